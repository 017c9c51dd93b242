"""A plugin for the tests that libraries bring: what they clean up by FLUSHDB or FLUSHALL, which a server of locks has not, is deleted by
name; and those of valkey-py take any server for a Valkey."""

import importlib

NAMES = ("foo",)
for module in ("redis", "valkey"):
    try:
        sync, unsync = importlib.import_module(module), importlib.import_module(module + ".asyncio")
    except ImportError:
        continue
    for holder in (sync, unsync):
        client = getattr(holder, module.title())
        client.flushdb = client.flushall = lambda self, *args, **kwargs: self.delete(*NAMES)


def pytest_configure(config):
    try:
        import valkey
    except ImportError:
        return
    info = valkey.Valkey.info
    valkey.Valkey.info = lambda self, *args, **kwargs: {"valkey_version": "8.0.0", **info(self, *args, **kwargs)}
