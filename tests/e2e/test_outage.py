"""Masters that come back empty, as clients and operators see it: what is held stays held, who waits is served."""

import socket
import threading


class Closing:
    """A master's address at which every connection is closed at once; counts them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name, self.url = "a", "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.tries = 0
        self.enough = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                self.listener.accept()[0].close()
            except OSError:
                return
            self.tries += 1
            if self.tries == 100:
                self.enough.set()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_a_master_that_is_away_is_tried_often(make_broker):
    """Else nobody gets a lock for a second or two after its return. Doubling up to 2 s, 100 tries take a minute."""
    with Closing() as master:
        make_broker([master], ready=False)
        assert master.enough.wait(15), master.tries
