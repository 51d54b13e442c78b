"""A stand-in for `feedwater agent` that follows docs/agent.md: makes pictures by a formula, and fails on command.

What it does is told by FAKE_AGENT, a JSON object:
  samples, classes, window   of the data set and the window it asks for
  broken                     indices that do not decode
  faults                     a list of {"at", "nth", "do", …}: at the nth time (counted over all agents of a test) that
                             something happens, do something; see Faults
  reverse                    answers the wants that it holds in reverse order
  gate                       a FIFO: one byte lets one want be answered
  until_blocked              answers wants only once it was told that the loop is blocked
FAKE_AGENT_DIR is a folder shared by all agents of a test: what they were told is in its file "log", a JSON per line.
Uses the standard library only, to start fast.
"""

import base64
import collections
import fcntl
import hashlib
import json
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import traceback

CONTROL, PIDFD = 3, 4
SIZES = {"uint8": 1, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8}
WANT = struct.Struct("<QQIIIIQQQ")


def pixel_bytes(index, epoch, repeat, height, width):
    """The picture of one appearance of a sample: height x width x 3 bytes."""
    shift = (index * 7 + epoch * 13 + repeat * 29) & 255
    table = bytes((value + shift) & 255 for value in range(256))
    return bytes(
        (y * 3 + x * 5 + c * 11) & 255 for y in range(height) for x in range(width) for c in range(3)
    ).translate(table)


def size_of(index, transforms):
    """Height and width of a sample after the transforms."""
    for op in reversed(transforms):
        size = op.get("size")
        if size and len(size) == 2:
            return tuple(size)
    return 4 + index % 5, 4 + index % 3


def order(seed, epoch, samples, shuffle):
    indices = list(range(samples))
    if shuffle:
        random.Random(f"{seed} {epoch}").shuffle(indices)
    return indices


class Faults:
    """Things that go wrong at a chosen moment. Counts are kept in files, so that they go on in the next agent."""

    def __init__(self, spec, directory):
        self.faults, self.directory = spec.get("faults", []), directory

    def count(self, name):
        with open(os.path.join(self.directory, f"count-{name}"), "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            number = int(file.read() or 0) + 1
            file.truncate(0)
            file.write(str(number))
        return number

    def at(self, moment):
        """The faults due at this moment; those that end the agent do so here."""
        if not any(fault["at"] == moment for fault in self.faults):
            return []
        number = self.count(moment)
        due = [f for f in self.faults if f["at"] == moment and number in f.get("all", [f.get("nth", number)])]
        for fault in due:
            if fault["do"] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif fault["do"] == "exit":
                sys.stderr.write(fault.get("words", "last words of the fake agent") + "\n")
                sys.stderr.flush()
                os._exit(fault.get("code", 1))
            elif fault["do"] == "freeze":
                signal.pause()
        return [fault for fault in due if fault["do"] not in ("kill", "exit", "freeze")]


class Loader:
    """One Loader's socket."""

    def __init__(self, sock, spec, faults, note):
        self.sock, self.spec, self.faults, self.note = sock, spec, faults, note
        self.samples, self.classes = spec.get("samples", 100), spec.get("classes", 10)
        self.queue = collections.deque()
        self.memory = None
        self.gate = os.open(spec["gate"], os.O_RDWR) if spec.get("gate") else None
        self.silent = bool(spec.get("until_blocked"))

    # -- receiving

    def receive(self):
        """Handles one packet; False at the end."""
        packet, handles, _, _ = socket.recv_fds(self.sock, 65536, 4)
        if not packet:
            return False
        kind = packet[:1]
        if kind == b"C":
            text = packet[5:] or os.pread(handles[0], os.fstat(handles[0]).st_size, 0)
            seq, call = struct.unpack_from("<I", packet, 1)[0], json.loads(text)
            self.note({"call": call["method"], "params": call["params"], "handles": len(handles)})
            self.call(seq, call["method"], call["params"], handles)
        elif kind == b"V":
            if self.spec.get("greeting", {}) is None:  # one of before greetings
                self.sock.send(b"N" + json.dumps({"level": "warning", "message": "unknown kind 'V'"}).encode())
                self.sock.shutdown(socket.SHUT_RDWR)
                return False
            self.sock.send(b"V" + json.dumps({**json.loads(packet[1:]), **self.spec.get("greeting", {})}).encode())
        elif kind == b"W":
            for record in range(1, len(packet), WANT.size):
                want = WANT.unpack_from(packet, record)
                self.note({"want": want[:6], "ahead": want[6], "step": want[8]})
                self.faults.at("want")
                self.queue.append((self.memory, *want[:8], self.place))
        elif kind == b"P":
            rank, world, samples, ready, window, blocked, _ = struct.unpack_from("<IIIIIdB", packet, 1)
            steps = [list(step) for step in struct.iter_unpack("<Qdddd", packet[30:])]
            head = {"rank": rank, "world": world, "samples": samples, "ready": ready, "window": window}
            self.note({"pulse": steps, "blocked": blocked, **head})
            self.silent = self.silent and blocked < 0
        elif kind == b"X":
            for (ident,) in struct.iter_unpack("<Q", packet[1:]):
                self.note({"cancel": ident})
                held = [want for want in self.queue if want[1] == ident]
                if held:
                    self.queue.remove(held[0])
                    self.sock.send(b"X" + struct.pack("<Q", ident))
        return True

    def answer(self, seq, result, value, blob=b"", ok=1):
        text = json.dumps(value).encode()
        os.ftruncate(result, len(text) + len(blob))
        os.pwrite(result, text + blob, 0)
        os.close(result)
        self.sock.send(b"A" + struct.pack("<IB3xQQ", seq, ok, len(text), len(blob)))

    def call(self, seq, method, params, handles):
        for fault in self.faults.at(method):
            if fault["do"] == "error":
                return self.answer(seq, handles[0], fault["error"], ok=0)
            if fault["do"] == "close":
                return self.sock.shutdown(socket.SHUT_RDWR)
        getattr(self, method)(seq, params, handles)
        return self.faults.at(f"after {method}")

    def open(self, seq, params, handles):
        plan = self.plan = params["plan"] if isinstance(params["plan"], dict) else json.loads(params["plan"])
        self.transforms = plan["transforms"]
        fixed = any(len(op.get("size") or ()) == 2 for op in self.transforms)
        shape = [*size_of(0, self.transforms), 3] if fixed else [0, 0, 3]
        digest = lambda *parts: hashlib.sha256(json.dumps(parts).encode()).hexdigest()  # noqa: E731
        fingerprint = self.fingerprint = digest(self.samples, self.spec.get("salt"))
        answer = {
            "plan": json.dumps(plan),
            "plan_hash": digest(plan),
            "order_hash": digest(fingerprint, plan["seed"], plan["shuffle"]),
            "pixel_hash": digest(plan["seed"], self.transforms, plan["on_error"]),
            "numerics": self.spec.get("numerics", "17" * 32),
            "revisions": self.spec.get("revisions"),
            "stores": self.spec.get("stores", {}),
            "fingerprint": fingerprint,
            "samples": self.samples,
            "classes": [{"name": f"class{c}", "samples": 1} for c in range(self.classes)],
            "fields": [
                {"name": "image", "dtype": "uint8", "shape": shape},
                {"name": "label", "dtype": "int64", "shape": []},
                {"name": "index", "dtype": "int64", "shape": []},
            ],
            "ops": [
                {"name": op["op"], "place": "node", "dialect": "pil", "tier": "A", "arguments": {}}
                for op in self.transforms
            ],
            "window": self.spec.get("window", 4),
            "version": "fake",
            "kernels": "none",
            "workers": 1,
            "nodes": [],
        }
        self.answer(seq, handles[0], answer)

    def listing(self, seq, params, handles):
        top, keys, counts = params["path"], "", []
        for name in sorted(entry.name for entry in os.scandir(top) if entry.is_dir()):
            held = [os.path.join(d, file) for d, _, files in sorted(os.walk(f"{top}/{name}")) for file in sorted(files)]
            keys += "".join(os.path.relpath(path, top) + "\0" for path in held)
            counts.append(len(held))
        self.answer(seq, handles[0], {"fingerprint": self.fingerprint, "counts": counts}, keys.encode())

    def slots(self, seq, params, handles):
        hop = (params.get("last_hop") or {}).get("image") or {"dtype": "uint8", "table": None, "layout": "hwc"}
        self.hop, self.batch, stride = hop, params["batch"], params["stride"]
        fixed = any(len(op.get("size") or ()) == 2 for op in self.transforms)
        height, width = size_of(0, self.transforms) if fixed else (0, 0)
        fields, offset = [], 0
        image = height * width * 3 * SIZES[hop["dtype"]] * self.batch
        shape = [height, width, 3] if hop["layout"] == "hwc" else [3, height, width]
        for name, dtype, sample, size in (
            ("label", "int64", [], 8 * self.batch),
            ("index", "int64", [], 8 * self.batch),
            ("image", hop["dtype"], shape, image),
        ):
            fields.append({"name": name, "dtype": dtype, "shape": sample, "offset": offset})
            offset += -(-size // 64) * 64
        if offset > stride:
            os.close(handles[1])
            return self.answer(seq, handles[0], {"kind": "room", "message": "too small", "bytes": offset}, ok=0)
        self.place = stride, {field["name"]: field["offset"] for field in fields}
        self.memory = mmap.mmap(handles[1], params["count"] * stride)
        os.close(handles[1])
        return self.answer(seq, handles[0], {"fields": fields, "bytes": offset})

    def status(self, seq, params, handles):
        self.answer(seq, handles[0], {"nodes": [], "queued": 0.0})

    def replay(self, seq, params, handles):
        epoch = params["epoch"]
        if "indices" in params:
            refs = list(zip(params["indices"], params["repeats"]))
        else:
            refs = self.refs(epoch, range(params["position"], params["position"] + params["count"]))
        samples, blob = [], b""
        for offset, (index, repeat) in enumerate(refs):
            height, width = size_of(index, self.transforms)
            sample = {
                "key": self.key(index),
                "index": index,
                "repeat": repeat,
                "label": index % self.classes,
                "error": None,
            }
            sample |= {"encoded_bytes": 100 + index, "height": height, "width": width, "offset": len(blob)}
            sample["draws"] = [{"op": op["op"], "applied": True, "epoch": epoch} for op in self.transforms]
            if params["pixels"] and index in self.spec.get("broken", ()):
                sample["error"] = self.broken(offset, index)
            elif params["pixels"]:
                blob += pixel_bytes(index, epoch, repeat, height, width)
            samples.append(sample)
        self.answer(seq, handles[0], {"samples": samples}, blob)

    # -- making batches

    def key(self, index):
        return f"class{index % self.classes}/{index}.jpg"

    def broken(self, offset, index):
        cause = f"no picture in {index}"
        return {"offset": offset, "index": index, "key": self.key(index), "op": "decode", "cause": cause, "node": ""}

    def refs(self, epoch, positions):
        indices = order(self.plan["seed"], epoch, self.samples, self.plan["shuffle"])
        return [(indices[p % self.samples], p // self.samples) for p in positions]

    def work(self):
        """Answers what it holds."""
        if self.silent:
            return
        held = list(self.queue)
        self.queue.clear()
        for want in reversed(held) if self.spec.get("reverse") else held:
            if self.gate is not None:
                os.read(self.gate, 1)
            self.make(*want)

    def make(self, memory, ident, position, epoch, count, slot, flags, ahead, _, place):
        stride, offsets = place
        for fault in self.faults.at("make"):
            if fault["do"] == "fail":
                return self.fail(ident, fault["error"])
            if fault["do"] == "close":
                return self.sock.shutdown(socket.SHUT_RDWR)
            if fault["do"] == "notice":
                self.sock.send(b"N" + json.dumps({"level": "warning", "message": fault["message"]}).encode())
            if fault["do"] == "cancel":
                return self.sock.send(b"X" + struct.pack("<Q", ident))
        base = slot * stride
        if flags & 1:
            at = base + offsets["index"]
            indices = struct.unpack_from(f"<{count}Q", memory, at)
            refs = [(index, (position + i) & 0xFFFFFFFF) for i, index in enumerate(indices)]
        else:
            refs = self.refs(epoch, range(position, position + count))
        errors = [self.broken(i, index) for i, (index, _) in enumerate(refs) if index in self.spec.get("broken", ())]
        if errors and self.plan["on_error"] == "raise":
            return self.fail(ident, {"kind": "sample", "message": "broken", **errors[0]})
        details = {"errors": errors} if errors else {}
        if self.plan["on_error"] == "substitute":
            for error in errors:
                error["substitute"] = (error["index"] + 1) % self.samples
                refs[error["offset"]] = (error["substitute"], refs[error["offset"]][1])
        struct.pack_into(f"<{count}q", memory, base + offsets["label"], *(i % self.classes for i, _ in refs))
        struct.pack_into(f"<{count}q", memory, base + offsets["index"], *(i for i, _ in refs))
        if not self.images(ident, memory, base, place, epoch, refs, details):
            return None
        if "later_stores" in self.spec:  # of a node that came after the plan was opened
            details["stores"] = self.spec["later_stores"]
        text = json.dumps(details).encode() if details else b""
        window = self.spec.get("window", 4)
        use = self.spec.get("later_index" if epoch and "later_index" in self.spec else "index", ())
        use = (*use, *[0] * 7)[:7]
        self.sock.send(b"D" + struct.pack("<QIIIIIIIIQII", ident, slot, count, window, len(text), *use) + text)
        return self.faults.at("done")

    def images(self, ident, memory, base, place, epoch, refs, details):
        stride, image = place[0], place[1]["image"]
        at = base + image
        offsets, shapes = [0], []
        for number, (index, repeat) in enumerate(refs):
            if number == len(refs) // 2:
                self.faults.at("half")
            height, width = size_of(index, self.transforms)
            data = self.hopped(pixel_bytes(index, epoch, repeat, height, width))
            if at + len(data) > base + stride:
                need = image + 4 * len(refs) * len(data)
                self.fail(ident, {"kind": "room", "message": "too small", "bytes": need})
                return False
            memory[at : at + len(data)] = data
            at += len(data)
            offsets.append(at - base - image)
            shapes.append([height, width, 3] if self.hop["layout"] == "hwc" else [3, height, width])
        if not any(len(op.get("size") or ()) == 2 for op in self.transforms):
            details["ragged"] = {"image": {"offsets": offsets, "shapes": shapes}}
        return True

    def hopped(self, data):
        if self.hop["table"] is None and self.hop["layout"] == "hwc":
            return data
        size = SIZES[self.hop["dtype"]]
        if self.hop["table"] is None:
            cells = [[bytes([v]) for v in range(256)]] * 3
        else:
            raw = base64.b64decode(self.hop["table"])
            cells = [[raw[(c * 256 + v) * size : (c * 256 + v + 1) * size] for v in range(256)] for c in range(3)]
        planes = [[cells[c][v] for v in data[c::3]] for c in range(3)]
        if self.hop["layout"] == "chw":
            return b"".join(map(b"".join, planes))
        return b"".join(b"".join(pixel) for pixel in zip(*planes))

    def fail(self, ident, error):
        self.sock.send(b"E" + struct.pack("<Q", ident) + json.dumps(error).encode())


def main():
    spec = json.loads(os.environ["FAKE_AGENT"])
    directory = os.environ["FAKE_AGENT_DIR"]
    faults = Faults(spec, directory)
    log = open(os.path.join(directory, "log"), "a", buffering=1)  # noqa: SIM115
    note = lambda thing: log.write(json.dumps({**thing, "pid": os.getpid()}) + "\n")  # noqa: E731
    note({"start": sys.argv[1:], "sid": os.getsid(0), "env": os.environ.get("FEEDWATER_AGENT_PIDFD")})
    faults.at("start")
    control = socket.socket(fileno=CONTROL)
    watched = {control: None}
    if os.environ.get("FEEDWATER_AGENT_PIDFD") == "4":
        watched[PIDFD] = None
    loaders = {}
    while True:
        busy = any(loader.queue for loader in loaders.values())
        for ready in select.select([*watched, *loaders], [], [], 0 if busy else None)[0]:
            if ready == PIDFD:
                note({"end": "pidfd"})
                return
            if ready is control:
                packet, handles, _, _ = socket.recv_fds(control, 16, 1)
                if not packet:
                    note({"end": "control"})
                    return
                sock = socket.socket(fileno=handles[0])
                loaders[sock] = Loader(sock, spec, faults, note)
            else:
                try:
                    going = loaders[ready].receive()
                except (ConnectionError, BrokenPipeError):
                    going = False
                if not going:
                    note({"closed": True})
                    del loaders[ready]
        for loader in list(loaders.values()):
            try:
                if loader.queue and not select.select([loader.sock], [], [], 0)[0]:
                    loader.work()
            except (ConnectionError, BrokenPipeError):
                pass


if __name__ == "__main__":
    try:
        main()
    except Exception:
        traceback.print_exc()
        raise
