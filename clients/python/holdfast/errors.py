"""What can go wrong."""


class LockError(Exception):
    """Something about a lock; the text says what, and to which name."""


class NotGranted(LockError, TimeoutError):
    """The lock was not to be had in the time that was given."""


class LockLost(LockError):
    """The lock is not held any more: stop working on what it protects."""


class Refused(LockError):
    """The broker has refused the request; the text begins with its code (holdfast-protocol(7), ERROR REPLIES)."""


class AlreadyHeld(LockError):
    """This task or thread holds the lock already, and re-entry was not asked for."""


class Disconnected(LockError):
    """No broker of the list could be reached, or the client has been closed."""
