"""The bounded pool in which a backend's blocking calls run (A1, X4)."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
import time

import pytest

from agentkernel_kb.errors import KnowledgeBackendError
from agentkernel_kb.workers import WorkerPool


@pytest.fixture
def pool() -> WorkerPool:
    return WorkerPool(2, "pool-under-test")


def test_a_function_runs_in_a_named_daemon_thread(pool: WorkerPool) -> None:
    thread = pool.submit(threading.current_thread).result(timeout=30)
    assert (thread.name, thread.daemon) == ("pool-under-test-1", True)


def test_arguments_and_results_are_handed_over(pool: WorkerPool) -> None:
    assert pool.submit(divmod, 7, 2).result(timeout=30) == (3, 1)
    assert pool.submit(dict, a=1).result(timeout=30) == {"a": 1}


def test_an_error_is_handed_over(pool: WorkerPool) -> None:
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(timeout=30)


@pytest.mark.parametrize("error", [SystemExit("bye"), KeyboardInterrupt(), StopIteration("end"), GeneratorExit()], ids=repr)
def test_what_would_end_an_event_loop_is_wrapped(pool: WorkerPool, error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(KnowledgeBackendError, match=f"^{type(error).__name__} in a worker thread$") as caught:
        pool.submit(fail).result(timeout=30)
    assert caught.value.__cause__ is error


def test_a_worker_survives_an_error(pool: WorkerPool) -> None:
    for _ in range(5):
        pool.submit(lambda: 1 / 0).exception(timeout=30)
    assert pool.submit(lambda: "alive").result(timeout=30) == "alive"


def test_no_more_threads_than_allowed_run_at_a_time(pool: WorkerPool) -> None:
    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()

    def work() -> str:
        with lock:
            running.append(1)
            most.append(len(running))
        time.sleep(0.01)
        with lock:
            running.pop()
        return threading.current_thread().name

    names = {future.result(timeout=30) for future in [pool.submit(work) for _ in range(20)]}
    assert names == {"pool-under-test-1", "pool-under-test-2"}
    assert max(most) == 2


def test_an_idle_thread_is_used_again(pool: WorkerPool) -> None:
    first = pool.submit(threading.get_ident).result(timeout=30)
    for _ in range(1_000):  # The thread counts itself idle a moment after its result is there.
        if pool.submit(threading.get_ident).result(timeout=30) == first:
            break
    else:
        pytest.fail("the first thread was never used again")


def test_a_call_sees_the_context_of_its_caller(pool: WorkerPool) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("of the caller")
    assert pool.submit(variable.get).result(timeout=30) == "of the caller"


def test_a_call_cannot_change_the_context_of_its_caller(pool: WorkerPool) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    pool.submit(variable.set, "changed").result(timeout=30)
    assert variable.get() == "unset"


def test_a_call_that_is_cancelled_in_the_queue_never_runs() -> None:
    pool = WorkerPool(1, "narrow")
    started, release = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold() -> None:
        started.set()
        release.wait(timeout=30)

    holding = pool.submit(hold)
    assert started.wait(timeout=30)
    waiting = pool.submit(ran.append, "ran")
    assert waiting.cancel()
    release.set()
    holding.result(timeout=30)
    assert pool.submit(lambda: list(ran)).result(timeout=30) == []


def test_a_released_pool_starts_again_when_it_is_needed(pool: WorkerPool) -> None:
    pool.release()
    before = pool.submit(threading.current_thread).result(timeout=30)
    pool.release()
    pool.release()
    after = pool.submit(threading.current_thread).result(timeout=30)
    assert before is not after


def test_a_function_for_which_no_thread_can_be_started_never_runs(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _refuse)  # A real limit of threads would bring down the test runner.
        with pytest.raises(KnowledgeBackendError, match="no thread can be started for pool-under-test"):
            pool.submit(ran.append, 1)
    assert pool.submit(lambda: list(ran)).result(timeout=30) == []


def _refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_releasing_lets_running_and_waiting_calls_finish() -> None:
    pool = WorkerPool(1, "closing")
    release = threading.Event()
    running = pool.submit(release.wait, 30)
    waiting = pool.submit(lambda: "done")
    pool.release()
    release.set()
    assert (running.result(timeout=30), waiting.result(timeout=30)) == (True, "done")


def test_releasing_ends_the_threads(pool: WorkerPool) -> None:
    thread = pool.submit(threading.current_thread).result(timeout=30)
    pool.release()
    thread.join(timeout=30)
    assert not thread.is_alive()


def run_program(source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)


def test_a_hung_call_does_not_keep_the_process_alive() -> None:
    result = run_program(
        "import threading\n"
        "from agentkernel_kb.workers import WorkerPool\n"
        "started = threading.Event()\n"
        "WorkerPool(1, 'hung').submit(lambda: (started.set(), threading.Event().wait()))\n"
        "assert started.wait(30)\n"
        "print('done')\n"
    )
    assert (result.stdout, result.returncode) == ("done\n", 0), result.stderr


def test_a_pool_works_on_in_a_forked_process() -> None:
    result = run_program(
        "import os, warnings\n"
        "from agentkernel_kb.workers import WorkerPool\n"
        "warnings.simplefilter('ignore')\n"
        "pool = WorkerPool(1, 'forked')\n"
        "parent = pool.submit(os.getpid).result(30)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if pool.submit(os.getpid).result(30) != parent else 1)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert result.returncode == 0, result.stderr
