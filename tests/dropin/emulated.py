"""The conditional commands of Redis 8.4 and Valkey 9 on a Redis that has them not yet, as their documentation has them."""


def needed(argv):
    word = str(argv[0]).upper()
    return word in ("DELEX", "DELIFEQ") or (word == "SET" and len(argv) > 3 and str(argv[3]).upper() == "IFEQ")


def ask(conn, argv):
    """Nobody else talks to that Redis meanwhile."""
    word, key = str(argv[0]).upper(), argv[1]
    if word == "DELEX" and len(argv) == 2:
        return conn.ask("DEL", key)
    wanted = argv[2] if word == "DELIFEQ" else argv[4] if word == "SET" else argv[3]
    there = conn.ask("GET", key)
    if there[0] == b"-":
        return there
    wanted = wanted if isinstance(wanted, bytes) else str(wanted).encode()
    equal = there[1] == wanted
    if word == "SET":
        return conn.ask("SET", key, argv[2], *argv[5:]) if equal else conn.ask("GET", "emulated:nothing-is-ever-here")
    return conn.ask("DEL", key) if equal else (b":", 0)
