"""A plugin for the tests that libraries bring: what they clean up by FLUSHDB, which a server of locks has not, is deleted by name."""

import importlib

NAMES = ("foo",)
for module in ("redis", "valkey"):
    try:
        sync, unsync = importlib.import_module(module), importlib.import_module(module + ".asyncio")
    except ImportError:
        continue
    for holder in (sync, unsync):
        client = getattr(holder, module.title())
        client.flushdb = lambda self, *args, **kwargs: self.delete(*NAMES)
