"""Checkpoints in a folder: whole generations, or none (FAULTS E13, E14; DESIGN §5).

A generation is written beside the others, synced, and only then given its name. Its manifest says size and SHA-256 of
each file, and is itself sealed; what does not agree with it in every bit is refused and the one before is offered.

Layout: ``generation-00000007/{manifest.json, …}`` and ``newest``, which says how far the folder once was.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import Any, BinaryIO, Dict, Iterator, List, NamedTuple, Optional

from nodemanager_agent.client import verified

MANIFEST = "manifest.json"
NEWEST = "newest"

_PREFIX = "generation-"
_PARTIAL = ".partial-"
_CHUNK = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


class CheckpointError(Exception):
    """What could not be written or found.

    Attributes:
        code: ``NO_SPACE``, ``NO_CHECKPOINT`` or ``STALE``.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class Seal(NamedTuple):
    """Size in bytes and SHA-256 of one file."""

    size: int
    sha256: str


class Checkpoint(NamedTuple):
    """A generation that was verified.

    Attributes:
        folder: where its files are.
        step: mini-batches done when it was written.
        continuity: what the writer noted of itself, to be held against what comes back.
        refused: newer generations that were not taken, each with the reason.
    """

    folder: str
    generation: int
    step: int
    framework: str
    world_size: int
    continuity: Dict[str, Any]
    files: Dict[str, Seal]
    refused: List[str]

    def path(self, name: str) -> str:
        """Of one of its files.

        Raises:
            KeyError: it has no such file.
        """
        if name not in self.files:
            raise KeyError(name)
        return os.path.join(self.folder, name)


class CheckpointStore:
    """The generations in one folder; one process writes at a time.

    Args:
        keep: generations that stay; at least two, so that there is one to fall back to, unless nobody would.
    """

    def __init__(self, folder: str, keep: int = 2) -> None:
        self.folder = folder
        self._keep = keep

    @contextmanager
    def write(
        self,
        step: int,
        framework: str,
        world_size: int,
        continuity: Optional[Dict[str, Any]] = None,
    ) -> Iterator["Draft"]:
        """A draft, which becomes the newest generation when the block ends, and leaves nothing when it raises.

        Raises:
            CheckpointError: NO_SPACE.
            OSError: the folder cannot be written.
        """
        draft: Optional[Draft] = None
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._sweep()
            draft = Draft(tempfile.mkdtemp(prefix=_PARTIAL, dir=self.folder))
            yield draft
            self._commit(draft, step, framework, world_size, continuity or {})
        except BaseException as error:
            if draft is not None:
                shutil.rmtree(draft.folder, ignore_errors=True)
            if is_full(error) or (draft is not None and draft.is_full):
                raise CheckpointError("NO_SPACE", "no space on {}".format(self.folder)) from error
            raise
        self._prune()

    def read(self, at_least_step: int = 0) -> Checkpoint:
        """The newest generation that is whole.

        Args:
            at_least_step: what someone else knows was saved: an older snapshot of the whole folder shows by it alone.

        Raises:
            CheckpointError: NO_CHECKPOINT where none is whole; STALE where the newest whole one is older than that.
        """
        refused: List[str] = []
        numbers = self.generations()
        once = self._newest()
        if once > max(numbers, default=0):
            refused.append("generation {} is gone".format(once))
        for number in reversed(numbers):
            try:
                found = self._verified(number)._replace(refused=refused)
            except (ValueError, KeyError, TypeError, OSError) as error:
                refused.append("generation {}: {}".format(number, error))
                continue
            if found.step < at_least_step:
                text = "step {} in {}, step {} was saved".format(
                    found.step, self.folder, at_least_step
                )
                raise CheckpointError("STALE", "; ".join([text, *refused]))
            return found
        raise CheckpointError(
            "NO_CHECKPOINT", "; ".join(refused) or "no checkpoint in {}".format(self.folder)
        )

    def at(self, step: int) -> Checkpoint:
        """The newest generation of a step that is whole.

        Raises:
            CheckpointError: NO_CHECKPOINT.
        """
        refused: List[str] = []
        for number in reversed(self.generations()):
            try:
                if self._step(number) == step:
                    return self._verified(number)
            except (ValueError, KeyError, TypeError, OSError) as error:
                refused.append("generation {}: {}".format(number, error))
        detail = "; ".join(["no step {} in {}".format(step, self.folder), *refused])
        raise CheckpointError("NO_CHECKPOINT", detail)

    def steps(self) -> List[int]:
        """Of all generations with a manifest, newest first; whether their files are whole shows when they are read."""
        found: List[int] = []
        for number in reversed(self.generations()):
            try:
                found.append(self._step(number))
            except (ValueError, KeyError, TypeError, OSError):
                continue
        return found

    def generations(self) -> List[int]:
        """Numbers of all that have a name, whole or not, oldest first."""
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        tails = [name[len(_PREFIX) :] for name in names if name.startswith(_PREFIX)]
        return sorted(int(tail) for tail in tails if tail.isdigit())

    # ------------------------------------------------------------------ writing

    def _commit(
        self,
        draft: "Draft",
        step: int,
        framework: str,
        world_size: int,
        continuity: Dict[str, Any],
    ) -> None:
        number = max([self._newest(), *self.generations()]) + 1
        body = {
            "generation": number,
            "step": step,
            "framework": framework,
            "world_size": world_size,
            "continuity": continuity,
            "files": {name: list(seal) for name, seal in sorted(draft.files.items())},
        }
        _write(os.path.join(draft.folder, MANIFEST), _sealed(body))
        _sync(draft.folder)
        os.rename(draft.folder, self._path(number))
        _sync(self.folder)
        beside = os.path.join(self.folder, _PARTIAL + NEWEST)
        _write(beside, str(number).encode())
        os.replace(beside, os.path.join(self.folder, NEWEST))
        _sync(self.folder)

    def _prune(self) -> None:
        for number in self.generations()[: -self._keep]:
            shutil.rmtree(self._path(number), ignore_errors=True)

    def _sweep(self) -> None:
        """Drafts of writers that died."""
        for name in os.listdir(self.folder):
            if name.startswith(_PARTIAL):
                path = os.path.join(self.folder, name)
                if os.path.isdir(path):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)

    # ------------------------------------------------------------------ reading

    def _newest(self) -> int:
        try:
            with open(os.path.join(self.folder, NEWEST), encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def _path(self, number: int) -> str:
        return os.path.join(self.folder, "{}{:08d}".format(_PREFIX, number))

    def _manifest(self, number: int) -> Dict[str, Any]:
        with open(os.path.join(self._path(number), MANIFEST), "rb") as file:
            return _opened(file.read())

    def _step(self, number: int) -> int:
        return int(self._manifest(number)["step"])

    def _verified(self, number: int) -> Checkpoint:
        folder = self._path(number)
        body = self._manifest(number)
        if body["generation"] != number:
            raise ValueError("it is generation {}".format(body["generation"]))
        files = {str(name): Seal(*seal) for name, seal in body["files"].items()}

        def check() -> None:
            for name, seal in files.items():
                _verify(folder, name, seal)

        verified.once(folder, [MANIFEST, *files], check)
        return Checkpoint(
            folder,
            number,
            int(body["step"]),
            str(body["framework"]),
            int(body["world_size"]),
            dict(body["continuity"]),
            files,
            [],
        )


class Draft:
    """A generation that is being written.

    Attributes:
        files: those that are done, with their seals.
        is_full: a write failed for want of space, whatever the framework made of that error.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files: Dict[str, Seal] = {}
        self.is_full = False

    @contextmanager
    def open(self, name: str) -> Iterator["SealedFile"]:
        """A new file, written from its beginning to its end.

        Raises:
            ValueError: no plain name, or one that is taken.
            OSError: it cannot be written.
        """
        if not _is_plain(name) or name in self.files:
            raise ValueError("file name {!r}".format(name))
        with open(os.path.join(self.folder, name), "xb", buffering=0) as raw:
            file = SealedFile(raw)
            try:
                yield file
                os.fsync(raw.fileno())
            except OSError as error:
                self.is_full = self.is_full or is_full(error)
                raise
            finally:
                self.is_full = self.is_full or file.is_full
        self.files[name] = file.seal()


class SealedFile:
    """Takes what is written and hashes it on the way. It cannot seek: what is hashed is what lies there."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._hash = hashlib.sha256()
        self._size = 0
        self.is_full = False

    def write(self, data: Any) -> int:
        """All of it; its size in bytes."""
        left = memoryview(data).cast("B")
        size = len(left)
        self._hash.update(left)
        try:
            while left:
                left = left[self._raw.write(left) :]
        except OSError as error:
            self.is_full = is_full(error)
            raise
        self._size += size
        return size

    def flush(self) -> None:
        """Nothing is held back."""

    def seal(self) -> Seal:
        """Of what was written so far."""
        return Seal(self._size, self._hash.hexdigest())


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no space, or that a quota is used up."""
    return isinstance(error, OSError) and error.errno in _FULL


def _sealed(body: Dict[str, Any]) -> bytes:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return "{}\n{}\n".format(text, hashlib.sha256(text.encode()).hexdigest()).encode()


def _opened(data: bytes) -> Dict[str, Any]:
    text = data.partition(b"\n")[0]
    body = json.loads(text.decode())
    if not isinstance(body, dict) or _sealed(body) != data:
        raise ValueError("its manifest is not what was written")
    return body


def _verify(folder: str, name: str, seal: Seal) -> None:
    if not _is_plain(name):
        raise ValueError("file name {!r}".format(name))
    total, size = hashlib.sha256(), 0
    with open(os.path.join(folder, name), "rb", buffering=0) as file:
        for part in _parts(file):
            total.update(part)
            size += len(part)
    if size != seal.size:
        raise ValueError("{} has {} bytes of {}".format(name, size, seal.size))
    if total.hexdigest() != seal.sha256:
        raise ValueError("{} is not what was written".format(name))


def _parts(file: BinaryIO) -> Iterator[memoryview]:
    room = memoryview(bytearray(_CHUNK))
    while True:
        size = file.readinto(room)  # type: ignore[attr-defined]  # of every raw file
        if not size:
            return
        yield room[:size]


def _is_plain(name: str) -> bool:
    return bool(name) and os.path.basename(name) == name and name not in (".", "..", MANIFEST)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
