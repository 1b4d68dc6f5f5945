"""Settings of the tests: the product's own, with values that a deployment would have to give."""

import atexit
import os
import shutil
import tempfile

# One a worker: they may share a Redis, where deployments are kept apart by their keys.
os.environ["SECRET_KEY"] = (
    f"only-for-tests-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}-" + "x" * 50
)
os.environ.setdefault("ALLOWED_HOSTS", "localhost,127.0.0.1,testserver")
os.environ.setdefault("ALLOWED_ORIGINS", "http://localhost:8000,http://testserver")
# A developer's own model, log and limits are not the tests'.
for name in (
    *("OPENAI_BASE_URL", "OPENAI_API_KEY", "CHAT_MODEL", "CONTEXT_WINDOW"),
    *("SUMMARY_MODEL", "SUMMARY_BASE_URL", "SUMMARY_API_KEY", "PROMPTS_DIR"),
):
    os.environ.pop(name, None)
# One call for each message, unless a test asks for more.
os.environ.setdefault("AUTOMATIC_TITLES", "false")
if not {"DATABASE_URL", "ACTIVITY_LOG_DIR", "IMPORT_DIR", "TESTS_FOLDER"} <= os.environ.keys():
    # One folder a run, which its workers inherit: two runs in one checkout do not meet.
    _folder = tempfile.mkdtemp(prefix="palimpsest-tests-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    os.environ.setdefault("DATABASE_URL", f"sqlite:///{_folder}/tests.sqlite3")
    os.environ.setdefault("ACTIVITY_LOG_DIR", f"{_folder}/activity")
    os.environ.setdefault("IMPORT_DIR", f"{_folder}/imports")
    os.environ.setdefault("TESTS_FOLDER", _folder)
# Each worker looks at the files of its own imports.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
if os.path.basename(os.environ["IMPORT_DIR"]) != _worker:
    os.environ["IMPORT_DIR"] = os.path.join(os.environ["IMPORT_DIR"], _worker)

from chatapp.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
