"""ChromaManager (rows A11, X7) on a Chroma server that is killed, comes back, and hangs."""

from __future__ import annotations

import pytest

import servers
from agentkernel_kb import KnowledgeBuilder
from agentkernel_kb.chroma import ChromaManager
from agentkernel_kb.embed import HashEmbedder
from agentkernel_kb.errors import KnowledgeConnectionError, KnowledgeTimeoutError
from agentkernel_kb.router.limits import Limits
from agentkernel_kb.router.resilience import Resilience

pytestmark = [
    pytest.mark.server("chroma"),
    # chromadb 1.5.9 leaves the connection of a client that could not be constructed to the garbage collector.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"),
]
EMBEDDER = HashEmbedder(64)


def test_a_server_that_is_killed_and_comes_back_is_an_error_and_then_heals():
    with servers.private("chroma") as own:
        kb = ChromaManager(
            name="docs",
            host="127.0.0.1",
            port=own.port,
            embedding_function=EMBEDDER,
            connect="lazy",
        )
        policy = Resilience(attempts=2, wait_seconds=0.01, failures=2, open_seconds=0.1, max_open_seconds=0.2)
        with KnowledgeBuilder([kb], limits=Limits(seconds=60), resilience=policy) as router:
            search_kb, write_kb = router.build()[4], router.build()[2]
            assert write_kb("docs", "text").startswith("Written to 'docs'. Id: ")
            assert search_kb("docs", "text").startswith("- text")
            own.kill()
            with pytest.raises(KnowledgeConnectionError, match=rf"Chroma at 127.0.0.1:{own.port} can't be reached"):
                kb.search("text")
            answers = [search_kb("docs", "text") for _ in range(3)]
            assert "failures since" in answers[-1]
            assert router.health(timeout=30)["docs"].state == "unreachable"
            own.start()
            while not (answer := search_kb("docs", "text")).startswith("- text"):
                assert "can't be reached" in answer


def test_a_server_that_hangs_ends_a_call_at_its_deadline():
    with servers.private("chroma") as own:
        kb = ChromaManager(host="127.0.0.1", port=own.port, embedding_function=EMBEDDER)
        kb.write([{"text": "text"}])
        own.pause()
        try:
            for call in (kb.search, lambda text, timeout: kb.add([{"text": text}], timeout=timeout)):
                with pytest.raises(KnowledgeTimeoutError, match="did not answer in time while 'chromadb' tried to"):
                    call("text", timeout=0.5)
            with pytest.raises(KnowledgeTimeoutError):
                kb.ping(timeout=0.5)
            router = KnowledgeBuilder([kb], limits=Limits(seconds=1))
            assert router.build()[4]("chromadb", "text").startswith("Backend 'chromadb' did not answer within 1 s.")
            assert router.health(timeout=1)["chromadb"].state == "timeout"
        finally:
            own.resume()
        assert [found["text"] for found in kb.search("text", timeout=60)] == ["text"]
        kb.close()
