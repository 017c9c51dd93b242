"""The scripts that libraries send, taken from MONITOR while they run: none of their texts is kept in this tree."""

import hashlib
import re

import typed

WORD_RE = re.compile(rb'"((?:[^"\\]|\\.)*)"')
ESCAPE_RE = re.compile(rb'\\(x[0-9a-f]{2}|.)', re.S)
ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
END = "the recording ends here"


def _unescaped(match):
    word = match.group(1)
    return bytes([int(word[1:], 16)]) if len(word) == 3 else ESCAPES.get(word, word)


class Recorded:
    """A script and one call of it: its keys, and what each of its arguments is."""

    def __init__(self, text, keys, args):
        self.name = self.sha = hashlib.sha1(text).hexdigest()
        self.text, self.family = text, "recorded"
        self.keys = ["S", "S", "M"][:len(keys)] if len(keys) < 4 else None
        self.args = [_kind(arg) for arg in args]
        # an integer that it returns may be a time
        self.has_time, self.is_read_only = True, False


def _kind(arg):
    if arg.lower() in (b"publish", b"spublish"):
        return '"%s"' % arg.decode()
    if re.fullmatch(rb"\d+", arg):   # smaller ones are flags, or numbers of databases
        if int(arg) >= 5:
            return "ms" if int(arg) >= 100 else "s"
    return "other" if re.fullmatch(rb"[\w.:+/=-]{6,}", arg) else '"%s"' % arg.decode("utf-8", "replace").replace('"', "")


class Recorder:
    """From now on, all that a redis-server is asked."""

    def __init__(self, address):
        self.address = address
        self.monitor = typed.Typed(address)
        self.monitor.ask("MONITOR")

    def requests(self):
        """All requests so far, as lists of words."""
        marker = typed.Typed(self.address)
        marker.ask("ECHO", END)
        marker.close()
        found = []
        while True:
            line = self.monitor.recv()[1]
            words = [ESCAPE_RE.sub(_unescaped, word) for word in WORD_RE.findall(line.partition(b"] ")[2])]
            if words[1:] == [END.encode()]:
                return found
            if b" lua] " not in line:
                found.append(words)

    def scripts(self):
        """Each script once for each number of keys that it was called with."""
        texts, calls = {}, {}
        for words in self.requests():
            name = words[0].upper()
            if name == b"SCRIPT" and words[1].upper() == b"LOAD":
                texts[hashlib.sha1(words[2]).hexdigest()] = words[2]
            if name == b"EVAL":
                texts[hashlib.sha1(words[1]).hexdigest()] = words[1]
            if name in (b"EVAL", b"EVALSHA"):
                sha = hashlib.sha1(words[1]).hexdigest() if name == b"EVAL" else words[1].decode()
                count = int(words[2])
                calls.setdefault((sha, count), (words[3:3 + count], words[3 + count:]))
        return [body for body in (Recorded(texts[sha], *call) for (sha, _), call in calls.items() if sha in texts) if body.keys]

    def close(self):
        self.monitor.close()
