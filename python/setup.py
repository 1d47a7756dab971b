"""Build steps that pyproject.toml cannot express: the API's messages are generated from ../proto, the published tables are
copied from ../experiments/published, and a wheel with programs is built for one kind of machine."""
import re
import shutil
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
GENERATED = Path("lengthwise") / "_proto"
PUBLISHED = Path("lengthwise") / "_published"


def beside(folder: str, file: str) -> Path:
    """A folder of the checkout: beside this directory, or, in a source distribution, inside it."""
    for directory in (HERE / folder, HERE.parent / folder):
        if (directory / file).is_file():
            return directory
    raise SystemExit(f"no {file} in {HERE.parent / folder}: build from a whole checkout of Lengthwise")


def proto_directory() -> Path:
    return beside("proto", "experiment_service.proto")


def published_directory() -> Path:
    return beside("experiments/published", "randomized_pe_table_1.json")


def copy_tables(target: Path) -> None:
    """The published tables, which are data of the package."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for table in published_directory().glob("*.json"):
        shutil.copy(table, target)


def generate(root: Path) -> None:
    """Writes the package lengthwise._proto below `root`."""
    import importlib.resources

    import grpc_tools.protoc

    with tempfile.TemporaryDirectory() as temporary:
        sources = Path(temporary) / GENERATED
        sources.mkdir(parents=True)
        for proto in proto_directory().glob("*.proto"):
            text = proto.read_text(encoding="utf-8")
            # Under names of this package alone: other programs have a module "proto" and google.rpc's messages.
            text = text.replace('import "proto/', f'import "{GENERATED.as_posix()}/')
            text = re.sub(r"^package google\.rpc;", "package lengthwise.google_rpc;", text, flags=re.MULTILINE)
            (sources / proto.name).write_text(text, encoding="utf-8")
        shutil.rmtree(root / GENERATED, ignore_errors=True)
        (root / GENERATED).mkdir(parents=True)
        (root / GENERATED / "__init__.py").touch()
        well_known = importlib.resources.files("grpc_tools") / "_proto"
        arguments = ["protoc", f"-I{temporary}", f"-I{well_known}", f"--python_out={root}", f"--pyi_out={root}"]
        if grpc_tools.protoc.main(arguments + [str(path) for path in sorted(sources.glob("*.proto"))]) != 0:
            raise SystemExit("protoc failed")
        for module in (root / GENERATED).glob("*_pb2.py"):
            # Without the check that lets protoc's code run with two major versions of protobuf alone. What is left is what
            # it has been since protobuf 3.20: tests/python/protobuf_versions_test.py runs it with the first and the last
            # version that pyproject.toml allows.
            text, imports = re.subn(r"^from google\.protobuf import runtime_version.*\n", "", module.read_text(), flags=re.M)
            text, checks = re.subn(r"^_runtime_version\.\w+\((?:\n    .*)*\n\)\n", "", text, flags=re.M)
            if imports != 1 or checks != 1:
                raise SystemExit(f"{module.name}: this protoc writes its check of protobuf's version in another way")
            module.write_text(text, encoding="utf-8")
        for stub in (root / GENERATED).glob("*.pyi"):
            # For those who check with `mypy --strict`.
            text = re.sub(r"\b_Mapping\]", "_Mapping[str, object]]", stub.read_text(encoding="utf-8"))
            stub.write_text(text.replace("**kwargs)", "**kwargs: object)"), encoding="utf-8")


class BuildWithMessages(build_py):
    def run(self) -> None:
        super().run()
        root = HERE if self.editable_mode else Path(self.build_lib)
        generate(root)
        copy_tables(root / PUBLISHED)


class DistributionWithProtos(sdist):
    def make_release_tree(self, base_dir: str, files: list) -> None:
        super().make_release_tree(base_dir, files)
        target = Path(base_dir) / "proto"
        target.mkdir(exist_ok=True)
        for proto in proto_directory().glob("*.proto"):
            shutil.copy(proto, target)
        copy_tables(Path(base_dir) / "experiments" / "published")


class Programs(Distribution):
    """A package with programs for one kind of machine."""

    def has_ext_modules(self) -> bool:
        return True


class WheelOfPrograms(bdist_wheel):
    """Any Python of the machine can start programs."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


commands = {"build_py": BuildWithMessages, "sdist": DistributionWithProtos}
options: dict[str, object] = {"cmdclass": commands}
if (HERE / "lengthwise" / "_programs").is_dir():  # deploy/wheel.sh
    commands["bdist_wheel"] = WheelOfPrograms
    files = [path.relative_to(HERE) for path in sorted((HERE / "share").rglob("*")) if path.is_file()]
    options |= {"distclass": Programs, "data_files": [(str(path.parent), [str(path)]) for path in files]}
setup(**options)
