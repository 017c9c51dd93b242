"""Reads the scripts of bodies/*.lua: what they are called, what they want, and their text."""

import glob
import hashlib
import os

HERE = os.path.dirname(os.path.abspath(__file__))


class Body:
    def __init__(self, head, text, family):
        fields = [field.strip() for field in head.split("|")] + [""] * 2
        self.name, self.keys, self.args = fields[0], fields[1].split(), fields[2].split()
        flags = fields[3].split()
        self.has_time, self.is_read_only = "time" in flags, "ro" in flags
        self.family = family
        self.text = text.strip() + "\n"
        self.sha = hashlib.sha1(self.text.encode()).hexdigest()


def all_bodies():
    found = []
    for path in sorted(glob.glob(os.path.join(HERE, "bodies", "*.lua"))):
        family = os.path.basename(path)[:-len(".lua")]
        with open(path, encoding="utf-8") as source:
            parts = source.read().split("\n--# ")[1:]
        found += [Body(*part.split("\n", 1), family) for part in parts]
    return found
