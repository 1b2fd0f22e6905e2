"""Holds the state of Holdfast sessions in Python. One file, standard library only, Python 3.8 or later.

A worker starts the program that a session type names (`command: ["python3", "model.py"]`) and speaks the host
protocol with it on stdin and stdout. This module does the speaking; the program says what there is to do:

    from holdfast_host import session

    @session.init
    def load(config, ctx):
        return Model(config["path"])          # the state

    @session.call
    def embed(model, text, ctx):
        return model.embed(text)

    session.run()

Handlers take as many of their arguments as they name: `init(config, ctx)`, `call(state, input, ctx)`,
`batch(state, inputs, ctx)`, `checkpoint(state, ctx)`, `restore(config, data, ctx)`, `snapshot(state, ctx)`,
`shutdown(state, ctx)`. They may be `async`. A call may be a generator: what it yields is streamed, what it returns is
the result. `bytes` anywhere in a value travel as they are.

What the program prints goes to the worker's log, with the request it belongs to; so does `logging`. Import this module
before anything that prints: from then on stdout belongs to the protocol.
"""

import asyncio
import concurrent.futures
import contextvars
import inspect
import io
import json
import logging
import os
import queue
import signal
import sys
import threading
import traceback

__all__ = ["Cancelled", "HostError", "NonRetryable", "PROTOCOL", "Session", "session"]

PROTOCOL = 1
LIBRARY = "holdfast_host.py 1"

_MOST_TEXT = 8000
_MOST_CAUSES = 5


class HostError(Exception):
    """An error with a code that programs can match on. Any other exception has the name of its class as its code."""

    def __init__(self, message, code="error", retryable=True, details=None):
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.details = details


class NonRetryable(HostError):
    """An error after which the engine does not try again."""

    def __init__(self, message, code="non_retryable", details=None):
        super().__init__(message, code=code, retryable=False, details=details)


class Cancelled(HostError):
    """Raised in a run whose caller no longer waits."""

    def __init__(self, message="cancelled"):
        super().__init__(message, code="cancelled", retryable=False)


class _HasBytes(Exception):
    """Raised if a value contains bytes: they have to be taken out before it becomes JSON."""


class _Wire:
    """Messages on the descriptors that were stdin and stdout: a line of JSON each, attachments behind it."""

    def __init__(self, source, target, limit):
        self._in = os.fdopen(source, "rb", 1 << 16)
        self._out = target
        self._limit = limit
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def receive(self):
        """The next message, or None when the worker is gone."""
        line = self._in.readline()
        if not line:
            return None
        message = json.loads(line)
        for part in message.pop("bytes", None) or ():
            data = self._in.read(part["size"])
            if len(data) < part["size"]:
                return None
            holder = message
            for step in part["at"][:-1]:
                holder = holder[step]
            holder[part["at"][-1]] = data
        return message

    def send(self, message):
        """Raises TypeError or ValueError if the message has no JSON form or is too long."""
        parts = []
        try:
            text = _dumps(message)
        except _HasBytes:
            found = []
            message = _take_bytes(message, [], found)
            message["bytes"] = [{"at": at, "size": len(data)} for at, data in found]
            parts = [data for _, data in found]
            text = _dumps(message)
        line = _encode(text, message) + b"\n"
        size = len(line) + sum(len(part) for part in parts)
        if size > self._limit:
            raise ValueError("a message of %d bytes is beyond the limit of %d (host.maxMessageMb)" % (size, self._limit))
        with self._lock:
            if os.getpid() != self._pid:
                return  # a forked child must not speak for its parent
            for part in [line] + parts:
                view = memoryview(part).cast("B")
                while len(view) > 0:
                    view = view[os.write(self._out, view) :]


def _default(value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise _HasBytes()
    if hasattr(value, "tolist"):  # arrays and scalars of numpy, torch and their like
        return value.tolist()
    raise TypeError("a %s has no JSON form" % type(value).__name__)


_dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False, ensure_ascii=False, default=_default).encode


def _encode(text, message):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which has no UTF-8 form but a JSON one
        return json.dumps(message, allow_nan=False, default=_default).encode("ascii")


def _take_bytes(value, at, found):
    """A copy of the value with None in place of its bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        found.append((at, bytes(value)))
        return None
    if isinstance(value, dict):
        return {str(key): _take_bytes(inner, at + [str(key)], found) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_take_bytes(inner, at + [index], found) for index, inner in enumerate(value)]
    return value


def _failure(error, depth=0):
    """An exception as data: its type, its message, its traceback."""
    hosted = isinstance(error, HostError)
    text = str(error)
    failure = {
        "code": str(error.code)[:128] if hosted and error.code else type(error).__name__,
        "message": text[:_MOST_TEXT],
        "retryable": bool(error.retryable) if hosted else True,
        "stack": _clip("".join(traceback.format_exception(type(error), error, _own_part(error.__traceback__), chain=False))),
    }
    if hosted and error.details is not None:
        try:
            failure["details"] = json.loads(_dumps(error.details))
        except Exception:
            failure["details"] = repr(error.details)[:_MOST_TEXT]
    elif not hosted:
        failure["details"] = {"type": "%s.%s" % (type(error).__module__, type(error).__qualname__)}
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and depth < _MOST_CAUSES:
        failure["cause"] = _failure(cause, depth + 1)
    return failure


def _own_part(trace):
    """Leaves out the frames of this file at the beginning: they do not help to find the error."""
    own = trace
    while own is not None and own.tb_frame.f_code.co_filename == __file__:
        own = own.tb_next
    return own or trace


def _clip(text):
    """Keeps the end of a long traceback, which shows where the error happened."""
    return text if len(text) <= _MOST_TEXT else "..." + text[-_MOST_TEXT:]


def _resident_bytes():
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except Exception:
        return None


_request = contextvars.ContextVar("holdfast_request", default=None)


class _LogStream(io.TextIOBase):
    """Turns printed text into lines of the worker's log."""

    def __init__(self, host, level):
        self._host = host
        self._level = level
        self._rest = ""
        self._lock = threading.RLock()

    encoding = "utf-8"

    def writable(self):
        return True

    def write(self, text):
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._host.log(self._level, line)
        return len(text)

    def flush(self):
        pass


class _LogHandler(logging.Handler):
    def __init__(self, host):
        super().__init__()
        self._host = host

    def emit(self, record):
        at = record.levelno
        level = "error" if at >= 40 else "warn" if at >= 30 else "info" if at >= 20 else "debug"
        fields = {"logger": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            fields["traceback"] = _clip("".join(traceback.format_exception(*record.exc_info)))
        self._host.log(level, record.getMessage(), fields)


class Log:
    """Lines of the worker's log: `ctx.log.info("loaded", layers=12)`."""

    def __init__(self, host, request):
        self._host = host
        self._request = request

    def debug(self, message, **fields):
        self._host.log("debug", message, fields, self._request)

    def info(self, message, **fields):
        self._host.log("info", message, fields, self._request)

    def warn(self, message, **fields):
        self._host.log("warn", message, fields, self._request)

    def error(self, message, **fields):
        self._host.log("error", message, fields, self._request)


class Blobs:
    """Bytes that the session keeps under names. They survive the loss of the holder and go with the session."""

    def __init__(self, host, key):
        self._host = host
        self._key = key

    def put(self, name, data):
        """Returns once it is stored for good: {"name", "bytes", "storedAt"}. Replaces what has the same name."""
        return self._host.ask_blob({"key": self._key, "do": "put", "name": name, "data": bytes(data)})

    def get(self, name):
        """The bytes, or None."""
        return self._host.ask_blob({"key": self._key, "do": "get", "name": name})

    def delete(self, name):
        """False if there is none of this name."""
        return self._host.ask_blob({"key": self._key, "do": "delete", "name": name})

    def list(self):
        """What there is, the oldest first: [{"name", "bytes", "storedAt"}]."""
        return self._host.ask_blob({"key": self._key, "do": "list"})


class SessionView:
    """The session whose state this is. `epoch` is the fencing token."""

    def __init__(self, host, facts):
        self._host = host
        self._key = facts["key"]
        self.id = facts["id"]
        self.type = facts["type"]
        self.epoch = facts["epoch"]
        self.attachment = facts["attachment"]
        self.worker_id = facts["workerId"]
        self.host = facts.get("host")
        self.resource_id = facts.get("resourceId")
        self.metadata = facts.get("metadata") or {}
        self.blobs = Blobs(host, self._key)

    def set_metadata(self, change):
        """Sets names to strings and takes away those that are None. Its instance hears of it soon."""
        change = dict(change)
        self.metadata = {
            name: value for name, value in {**self.metadata, **change}.items() if value is not None
        }
        self._host.send({"kind": "metadata", "key": self._key, "change": change})

    def give_up(self, reason):
        """Gives the state up: the session is lost with this reason."""
        self._host.send({"kind": "give-up", "key": self._key, "reason": str(reason)})


class Context:
    """The context of one run: facts about it, and methods that send messages to the worker."""

    def __init__(self, host, request, view, run=None):
        self._host = host
        self._request = request
        self._event = threading.Event()
        self._on_cancel = []
        self._reason = None
        self.session = view
        run = run or {}
        self.name = run.get("name")
        self.instance_id = run.get("instanceId")
        self.attempt = run.get("attempt", 1)
        self.last_heartbeat = run.get("lastHeartbeat")
        self.log = Log(host, request)

    @property
    def threads(self):
        """How many threads a library should compute with here."""
        try:
            return max(1, int(os.environ.get("OMP_NUM_THREADS", "1")))
        except ValueError:
            return 1

    @property
    def cancelled(self):
        """True if the caller no longer waits for this run."""
        return self._event.is_set()

    def check(self):
        """Raises Cancelled if the caller no longer waits for this run. Cheap: call it in every loop."""
        if self._event.is_set():
            raise Cancelled(self._reason or "cancelled")

    def sleep(self, seconds):
        """Sleeps; raises Cancelled as soon as the run is cancelled."""
        self._event.wait(seconds)
        self.check()

    def on_cancel(self, act):
        """Calls `act` from another thread when the run is cancelled; at once if it already is."""
        if self._event.is_set():
            act()
        else:
            self._on_cancel.append(act)

    def heartbeat(self, details=None):
        """Reports that this run is alive. The next attempt finds the details in `ctx.last_heartbeat`."""
        self._host.send({"kind": "heartbeat", "id": self._request, "details": details})

    def stream(self, chunk):
        """Writes a chunk of the result. Returns when the worker has taken it."""
        self.check()
        self._host.stream(self._request, chunk)

    def next_event(self, timeout=None):
        """The next event sent to the session, as {"name", "payload"}; None if the timeout passed or the run is over."""
        return self._host.next_event(self, timeout)

    def events(self):
        """Events sent to the session, until this run is cancelled or the session ends."""
        while True:
            event = self._host.next_event(self, None)
            if event is None:
                return
            yield event

    def report_model(self, name, device="cpu", load_ms=0, size=None):
        """Reports a loaded model, shown in the worker's metadata and metrics."""
        model = {"name": name, "device": device, "loadMs": load_ms}
        if size is not None:
            model["bytes"] = int(size)
        self._host.send({"kind": "model", "key": self.session._key, "model": model})

    def _cancel(self, reason):
        if self._event.is_set():
            return
        self._reason = reason
        self._event.set()
        for act in self._on_cancel:
            try:
                act()
            except Exception:
                traceback.print_exc()


def _called(handler, *args):
    """Calls a handler with as many arguments as it names."""
    return handler(*args[: _arity(handler, len(args))])


def _arity(handler, most):
    known = getattr(handler, "_holdfast_arity", None)
    if known is not None:
        return known
    try:
        kinds = [one.kind for one in inspect.signature(handler).parameters.values()]
    except (TypeError, ValueError):
        return most
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return most
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arity = min(most, sum(kind in positional for kind in kinds))
    try:
        handler._holdfast_arity = arity
    except AttributeError:
        pass  # attributes cannot be set on methods
    return arity


class Session:
    """A session type of the program: register a handler for each part, then call `run`."""

    def __init__(self):
        self._parts = {}
        self._calls = {}

    def _part(self, name):
        def decorate(handler):
            self._parts[name] = handler
            return handler

        return decorate

    def init(self, handler):
        """`init(config, ctx)` makes the state."""
        return self._part("init")(handler)

    def restore(self, handler):
        """`restore(config, data, ctx)` makes the state from the bytes of a checkpoint."""
        return self._part("restore")(handler)

    def checkpoint(self, handler):
        """`checkpoint(state, ctx)` returns the state as bytes."""
        return self._part("checkpoint")(handler)

    def snapshot(self, handler):
        """`snapshot(state, ctx)` returns a JSON value that people can look at."""
        return self._part("snapshot")(handler)

    def shutdown(self, handler):
        """`shutdown(state, ctx)` releases the resources of the state."""
        return self._part("shutdown")(handler)

    def call(self, handler=None, *, name=None):
        """`call(state, input, ctx)`: a call of the session type, by the name of the function or the one given."""
        return self._add("call", handler, name)

    def batch(self, handler=None, *, name=None):
        """`batch(state, inputs, ctx)`: calls that came together. Returns as many results; an exception in their
        list fails its item alone."""
        return self._add("batch", handler, name)

    def _add(self, kind, handler, name):
        def decorate(code):
            self._calls[name or code.__name__] = (kind, code)
            return code

        return decorate if handler is None else decorate(handler)

    def run(self):
        """Serves the worker until the worker ends it. Does not return."""
        if _host is None:
            sys.exit(
                "This program is started by a Holdfast worker: name it in a session type,\n"
                '  defineSession("…", { isolation: "process", command: ["python3", "%s"], … })'
                % os.path.basename(sys.argv[0])
            )
        _host.serve(self)


class _Host:
    """Speaks with the worker: a thread reads, the main thread (or as many as `concurrency`) runs the handlers."""

    def __init__(self, wire, concurrency):
        self._wire = wire
        self._concurrency = concurrency
        self._requests = queue.SimpleQueue()
        self._running = {}
        # Waiting requests by id: None, or the reason why the worker cancelled one before its turn.
        self._waiting = {}
        self._guard = threading.Lock()
        self._asked = {}
        self._last_asked = 0
        self._events = []
        self._events_changed = threading.Condition()
        self._over = False
        self._loop = None
        self._session = None
        self._view = None
        self._state = None

    # Messages to the worker.

    def send(self, message):
        self._wire.send(message)

    def log(self, level, message, fields=None, request=None):
        line = {"kind": "log", "level": level, "message": str(message)}
        of = _request.get() if request is None else request
        if of is not None:
            line = {"kind": "log", "id": of, "level": level, "message": str(message)}
        if fields:
            line["fields"] = fields
        try:
            self.send(line)
        except (TypeError, ValueError):
            line["fields"] = {name: repr(value)[:200] for name, value in (fields or {}).items()}
            line["message"] = line["message"][:_MOST_TEXT]
            self.send(line)

    def stream(self, request, chunk):
        self._ask(lambda number: {"kind": "chunk", "id": request, "chunk": number, "value": chunk})

    def ask_blob(self, question):
        return self._ask(lambda number: {"kind": "blob", "ask": number, **question})

    def _ask(self, message):
        """Sends the message with a number of its own, and waits for the answer with the same number."""
        waiting = queue.SimpleQueue()
        with self._guard:
            self._last_asked += 1
            number = self._last_asked
            self._asked[number] = waiting
        try:
            self.send(message(number))
            answer = waiting.get()
        finally:
            with self._guard:
                self._asked.pop(number, None)
        error = answer.get("error")
        if error:
            raise HostError(
                error.get("message", ""), error.get("code", "error"), error.get("retryable", True), error.get("details")
            )
        return answer.get("value")

    def next_event(self, ctx, timeout):
        def wake():
            with self._events_changed:
                self._events_changed.notify_all()

        ctx.on_cancel(wake)
        with self._events_changed:
            self._events_changed.wait_for(lambda: self._events or self._over or ctx.cancelled, timeout)
            if self._events and not ctx.cancelled:
                return self._events.pop(0)
            return None

    # Messages from the worker.

    def serve(self, session):
        self._session = session
        root = logging.getLogger()
        if not root.handlers:
            root.addHandler(_LogHandler(self))
            root.setLevel(logging.INFO)
        spoken = os.environ.get("HOLDFAST_HOST_PROTOCOL", str(PROTOCOL))
        if str(PROTOCOL) not in [version.strip() for version in spoken.split(",")]:
            message = "holdfast_host.py speaks version %d of the host protocol, and the worker speaks version %s" % (
                PROTOCOL,
                spoken,
            )
            error = {"code": "host_protocol_mismatch", "message": message, "retryable": False}
            self.send({"kind": "unable", "error": error})
        else:
            threading.Thread(target=self._read, name="holdfast-read", daemon=True).start()
            names = sorted(session._calls)
            self.send({"kind": "ready", "protocol": PROTOCOL, "calls": names, "library": LIBRARY})
        for index in range(1, self._concurrency):
            threading.Thread(target=self._work, name="holdfast-%d" % index, daemon=True).start()
        self._work()

    def _read(self):
        while True:
            try:
                message = self._wire.receive()
            except Exception:
                traceback.print_exc()
                message = None
            if message is None:
                _end_group()
            kind = message["kind"]
            if kind == "ping":
                pong = {"kind": "pong", "n": message["n"]}
                resident = _resident_bytes()
                if resident is not None:
                    pong["rssBytes"] = resident
                self.send(pong)
            elif kind == "cancel":
                self._cancel(message["id"], (message.get("reason") or {}).get("message"))
            elif kind == "taken" or kind == "blob":
                with self._guard:
                    waiting = self._asked.get(message["chunk" if kind == "taken" else "ask"])
                if waiting is not None:
                    waiting.put(message)
            elif kind == "event":
                with self._events_changed:
                    self._events.append({"name": message["name"], "payload": message.get("payload")})
                    self._events_changed.notify_all()
            else:
                with self._guard:
                    self._waiting[message["id"]] = None
                self._requests.put(message)

    def _cancel(self, request, reason):
        with self._guard:
            ctx = self._running.get(request)
            if request in self._waiting:
                self._waiting[request] = reason or "cancelled"
        if ctx is not None:
            ctx._cancel(reason)

    def _work(self):
        while True:
            self._answer(self._requests.get())

    def _answer(self, message):
        request = message["id"]
        if "session" in message:
            self._view = SessionView(self, message["session"])
        ctx = Context(self, request, self._view, message.get("run"))
        with self._guard:
            self._running[request] = ctx
            reason = self._waiting.pop(request, None)
        if reason is not None:
            ctx._cancel(reason)
        token = _request.set(request)
        try:
            ctx.check()
            answer = {"kind": "done", "id": request, "value": self._perform(message, ctx)}
            self._forget(request)
            self._send_answer(answer, message)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else (0 if leaving.code is None else 1)
            sys.stderr.flush()
            os._exit(code)
        except BaseException as error:
            self._forget(request)
            self.send({"kind": "failed", "id": request, "error": _failure(error)})
        finally:
            _request.reset(token)

    def _forget(self, request):
        with self._guard:
            self._running.pop(request, None)

    def _send_answer(self, answer, message):
        try:
            self.send(answer)
        except (TypeError, ValueError) as error:
            what = message.get("name") or message["kind"]
            text = "%s returned a value that cannot be sent: %s" % (what, error)
            failure = {"code": "not_serialisable", "message": text, "retryable": False}
            self.send({"kind": "failed", "id": answer["id"], "error": failure})

    def _perform(self, message, ctx):
        kind = message["kind"]
        parts = self._session._parts
        if kind == "init":
            handler = parts.get("init")
            self._state = self._finish(ctx, _called(handler, message.get("config"), ctx)) if handler else None
            return None
        if kind == "restore":
            handler = self._need("restore")
            self._state = self._finish(ctx, _called(handler, message.get("config"), message["state"], ctx))
            return None
        if kind == "call" or kind == "batch":
            return self._call(kind, message, ctx)
        if kind == "checkpoint":
            data = self._finish(ctx, _called(self._need("checkpoint"), self._state, ctx))
            if not isinstance(data, (bytes, bytearray, memoryview)):
                raise NonRetryable("checkpoint must return bytes", code="invalid_checkpoint")
            return data
        if kind == "snapshot":
            handler = parts.get("snapshot")
            return self._finish(ctx, _called(handler, self._state, ctx)) if handler else None
        if kind == "shutdown":
            state, self._state = self._state, None
            self._over = True
            with self._events_changed:
                self._events_changed.notify_all()
            handler = parts.get("shutdown")
            if handler:
                self._finish(ctx, _called(handler, state, ctx))
            return None
        if kind == "adopt":
            return None
        raise NonRetryable("this host does not know %s" % kind, code="unknown_request")

    def _need(self, part):
        handler = self._session._parts.get(part)
        if handler is None:
            raise NonRetryable("this program has no %s" % part, code="host_part_missing")
        return handler

    def _call(self, kind, message, ctx):
        name = message["name"]
        known = self._session._calls.get(name)
        if known is None:
            raise NonRetryable("this program has no call named %s" % name, code="unknown_call")
        has, handler = known
        if kind == "call":
            if has == "call":
                return self._finish(ctx, _called(handler, self._state, message.get("input"), ctx))
            return self._batch(handler, [message.get("input")], ctx)[0]
        inputs = message["inputs"]
        if has == "batch":
            results = self._batch(handler, inputs, ctx, raising=False)
        else:
            results = [self._one(handler, one, ctx) for one in inputs]
        return [
            {"ok": False, "error": _failure(one)} if isinstance(one, BaseException) else {"ok": True, "value": one}
            for one in results
        ]

    def _batch(self, handler, inputs, ctx, raising=True):
        results = self._finish(ctx, _called(handler, self._state, inputs, ctx))
        if hasattr(results, "tolist"):
            results = results.tolist()
        if not isinstance(results, (list, tuple)) or len(results) != len(inputs):
            text = "%s got %d inputs and must return a list of as many results" % (ctx.name, len(inputs))
            raise NonRetryable(text, code="invalid_batch_result")
        if raising:
            for one in results:
                if isinstance(one, BaseException):
                    raise one
        return results

    def _one(self, handler, value, ctx):
        try:
            return self._finish(ctx, _called(handler, self._state, value, ctx))
        except Exception as error:
            return error

    def _finish(self, ctx, result):
        """Runs the coroutine or generator that a handler returned."""
        if inspect.isgenerator(result):
            while True:
                try:
                    chunk = next(result)
                except StopIteration as end:
                    return end.value
                ctx.stream(chunk)
        if inspect.isawaitable(result):
            future = asyncio.run_coroutine_threadsafe(_awaited(result), self._event_loop())
            ctx.on_cancel(future.cancel)
            try:
                return future.result()
            except (asyncio.CancelledError, concurrent.futures.CancelledError):
                raise Cancelled(ctx._reason or "cancelled") from None
        return result

    def _event_loop(self):
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="holdfast-async", daemon=True).start()
            return self._loop


async def _awaited(awaitable):
    return await awaitable


def _end_group():
    """The worker is gone: ends this process and the processes it started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _take_over():
    """From here on stdin and stdout belong to the protocol. What is printed goes to the log, and what native code
    writes to descriptor 1 goes to stderr."""
    source, target = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    limit = int(os.environ.get("HOLDFAST_HOST_MAX_MESSAGE", str(256 * 1024 * 1024)))
    host = _Host(_Wire(source, target, limit), max(1, int(os.environ.get("HOLDFAST_HOST_CONCURRENCY", "1"))))
    sys.stdout = _LogStream(host, "info")
    return host


_host = _take_over() if "HOLDFAST_HOST_PROTOCOL" in os.environ else None

session = Session()
