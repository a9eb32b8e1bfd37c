def _autoload(): pass
