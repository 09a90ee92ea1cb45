"""What `gpuwait info --events --json` prints, one event after another."""

import json


def events(path):
    with open(path, encoding="utf-8") as f:
        text, at = f.read(), 0
    decode = json.JSONDecoder().raw_decode
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        found, at = decode(text, at)
        yield from found if isinstance(found, list) else [found]
