"""Takes uv's wheel for this machine from PyPI, checks its sha256 and puts its executable into DIR/bin."""

import hashlib
import io
import json
import os
import platform
import sys
import urllib.parse
import urllib.request
import zipfile


INDEX = "https://pypi.org/pypi/uv/json"


def tags():
    """The ends of wheel names that run here, best first."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if sys.platform == "darwin":
        return ["macosx", "arm64" if machine == "aarch64" else machine]
    libc = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return [libc, machine]


def main():
    target = sys.argv[1]
    with urllib.request.urlopen(INDEX, timeout=60) as reply:
        files = json.load(reply)["urls"]
    kind, machine = tags()
    wheels = [f for f in files if f["packagetype"] == "bdist_wheel" and kind in f["filename"] and machine in f["filename"]]
    if not wheels:
        sys.exit("PyPI has no wheel of uv for this machine (%s, %s)" % (kind, machine))
    wheel = wheels[0]
    with urllib.request.urlopen(urllib.parse.urljoin(INDEX, wheel["url"]), timeout=600) as reply:
        data = reply.read()
    if hashlib.sha256(data).hexdigest() != wheel["digests"]["sha256"]:
        sys.exit("the downloaded wheel of uv does not have the sha256 that PyPI states")
    archive = zipfile.ZipFile(io.BytesIO(data))
    inside = [n for n in archive.namelist() if n.endswith(".data/scripts/uv")]
    if len(inside) != 1:
        sys.exit("the wheel of uv has no executable at its usual place")
    os.makedirs(os.path.join(target, "bin"), exist_ok=True)
    path = os.path.join(target, "bin", "uv")
    with open(path, "wb") as out:
        out.write(archive.read(inside[0]))
    os.chmod(path, 0o755)


main()
