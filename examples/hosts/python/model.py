"""Sorts mails into ham and spam: naive Bayes, learnt from real mails when the session opens. Needs nothing but Python.

Where sentence-transformers is installed, `embed` uses it; otherwise words are hashed into a vector.
"""

import json
import math
import os
import re
import time
import zlib

from holdfast_host import NonRetryable, session

CORPUS = os.path.join(os.path.dirname(__file__), "..", "..", "mails", "mails.jsonl")
LABELS = ("ham", "spam")
WORD = re.compile(r"[a-z$!']{2,}")
# So many words decide, those that tell most; and a mail is spam only with reason.
TELLING, CAUTION = 15, 6


def words(text):
    return set(WORD.findall(text.lower()))


class Bayes:
    """In how many mails of each kind a word was seen."""

    def __init__(self):
        self.mails = {label: 0 for label in LABELS}
        self.seen = {label: {} for label in LABELS}
        self.learnt = 0

    def learn(self, text, label):
        if label not in LABELS:
            raise NonRetryable("a mail is ham or spam, not %s" % label, code="unknown_label")
        self.mails[label] += 1
        self.learnt += 1
        for word in words(text):
            self.seen[label][word] = self.seen[label].get(word, 0) + 1

    def weight(self, word):
        """Above 0 where it speaks for spam."""
        odds = [(self.seen[label].get(word, 0) + 1) / (self.mails[label] + 2) for label in LABELS]
        return math.log(odds[1] / odds[0])

    def classify(self, text):
        weights = sorted((self.weight(word) for word in words(text)), key=abs, reverse=True)
        total = sum(weights[:TELLING]) - CAUTION
        spam = 1 / (1 + math.exp(-max(-60, min(60, total))))
        return {"label": "spam", "score": spam} if spam > 0.5 else {"label": "ham", "score": 1 - spam}


class State:
    def __init__(self, bayes):
        self.bayes = bayes
        self.sentences = None


@session.init
def learn_corpus(config, ctx):
    began = time.monotonic()
    bayes = Bayes()
    with open(CORPUS, encoding="utf-8") as file:
        for line, _ in zip(file, range(config["mails"])):
            ctx.check()
            mail = json.loads(line)
            bayes.learn(mail["text"], mail["label"])
    ms = (time.monotonic() - began) * 1000
    ctx.report_model("bayes", device="cpu", load_ms=ms)
    print("learnt %d mails in %d ms" % (bayes.learnt, ms))
    return State(bayes)


@session.batch
def classify(state, texts):
    return [state.bayes.classify(text) for text in texts]


@session.call
def learn(state, mail):
    state.bayes.learn(mail["text"], mail["label"])
    return state.bayes.learnt


@session.call
def explain(state, text, ctx):
    ranked = sorted(words(text), key=state.bayes.weight, reverse=True)[:5]
    for word in ranked:
        yield {"word": word, "weight": round(state.bayes.weight(word), 3)}
    return len(ranked)


@session.call
def embed(state, text):
    if state.sentences is None:
        state.sentences = load_sentences()
    if state.sentences:
        return {"by": "sentence-transformers", "vector": state.sentences.encode(text)}
    vector = [0.0] * 64
    for word in words(text):
        digest = zlib.crc32(word.encode())
        vector[digest % 64] += 1 if digest & 64 else -1
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return {"by": "hashed words", "vector": [x / length for x in vector]}


def load_sentences():
    try:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(os.environ.get("SENTENCE_MODEL", "all-MiniLM-L6-v2"))
    except Exception:
        return False


@session.call
def pid(state, _input):
    return os.getpid()


@session.checkpoint
def checkpoint(state):
    return json.dumps(vars(state.bayes)).encode()


@session.restore
def restore(config, data, ctx):
    bayes = Bayes()
    vars(bayes).update(json.loads(data))
    return State(bayes)


@session.snapshot
def snapshot(state):
    return {"learnt": state.bayes.learnt, "words": {label: len(state.bayes.seen[label]) for label in LABELS}}


session.run()
