"""Settings of every test: hypothesis prints what replays a failure, and never fails for being slow.

Code that tests build is cached in a temporary folder of the run.
"""

import os
import tempfile

from hypothesis import HealthCheck, settings

# Before anything builds, and for processes that tests start: never the user's own cache.
_cache_folder = tempfile.TemporaryDirectory(prefix="tvm_tile_test_cache_", ignore_cleanup_errors=True)
os.environ["TVM_TILE_CACHE_DIR"] = _cache_folder.name
os.environ.pop("TVM_TILE_CACHE_SIZE", None)

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
