"""Settings of every test: hypothesis prints what replays a failure, and never fails for being slow."""

from hypothesis import HealthCheck, settings

# A failing property prints a `@reproduce_failure` line; `pytest --hypothesis-seed=N` replays a whole run.
settings.register_profile(
    "tvm-tile",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tvm-tile")


def pytest_report_header():
    """Say how a random test is replayed."""
    return "random tests: replay with --hypothesis-seed=N; failures print their own blob"
