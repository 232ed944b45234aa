"""Seed 002, "KnowledgeBuilder and Tools": what a router takes, and what the base leaves to its subclasses (A1, A5, A7)."""

import pytest

from agentkernel_kb.errors import AKConfigError
from agentkernel_kb.knowledgebuilder import KnowledgeBuilder
from agentkernel_kb.testing import FakeKnowledgeBase


def lake():
    return FakeKnowledgeBase("lake", search=False, query_language="sql")


def test_a5_two_backends_of_one_name_are_an_error():
    with pytest.raises(AKConfigError, match="Two knowledge bases are called 'lake'"):
        KnowledgeBuilder([lake(), lake()])


@pytest.mark.parametrize("wrong", [lake(), None, 3, "lake", [object()], [lake], [None]])
def test_a5_anything_but_a_list_of_backends_is_an_error(wrong):
    with pytest.raises(AKConfigError, match="KnowledgeBuilder takes"):
        KnowledgeBuilder(wrong)


@pytest.mark.parametrize("wrong", [{"limits": {"rows": 3}}, {"limits": 3}, {"on_event": "print"}])
def test_a5_other_arguments_of_the_wrong_type_are_errors(wrong):
    with pytest.raises(AKConfigError, match=next(iter(wrong))):
        KnowledgeBuilder([lake()], **wrong)


@pytest.mark.parametrize("name", ["", " ", "a\nb", " a", "*", "a\u202eb", None, 5])
def test_a5_a_name_that_cannot_be_told_apart_is_an_error(name):
    class Odd(FakeKnowledgeBase):
        @property
        def backend_name(self):
            return name

    with pytest.raises(AKConfigError, match="backend_name must be one line of text"):
        KnowledgeBuilder([Odd()])


def test_a5_a_backend_that_skipped_the_base_constructor_is_named():
    class Skipped(FakeKnowledgeBase):
        def __init__(self):
            pass

    with pytest.raises(AKConfigError, match="Skipped has no capabilities"):
        KnowledgeBuilder([Skipped()])


def test_a5_a_listener_that_nobody_would_await_is_an_error():
    async def listen(event): ...

    with pytest.raises(AKConfigError, match="nobody awaits"):
        KnowledgeBuilder([lake()], on_event=listen)


def test_a5_add_schema_before_the_base_constructor_says_so():
    class Skipped(FakeKnowledgeBase):
        def __init__(self):
            pass

    with pytest.raises(AKConfigError, match=r"call super\(\).__init__"):
        Skipped().add_schema({})


@pytest.mark.parametrize(
    "name", ["name", "overrides", "worker_pool", "_subject", "_pool", "_lock", "_client", "_workers", "_limits"]
)
def test_a1_the_base_leaves_common_names_to_its_subclasses(name):
    class Own(FakeKnowledgeBase):
        def __init__(self):
            super().__init__("own", [{"text": "hello", "metadata": {}}])
            setattr(self, name if name != "_lock" else "_own_lock", {})

    search_kb = {tool.__name__: tool for tool in KnowledgeBuilder([Own()]).build()}["search_kb"]
    assert search_kb("own", "hello") == "- hello (source: N/A)"


def test_a7_the_router_never_connects():
    class Counting(FakeKnowledgeBase):
        connected = 0

        def connect(self, **kwargs):
            type(self).connected += 1

    builder = KnowledgeBuilder([Counting("c")])
    builder.build()[1]("c", "x")
    builder.close()
    assert Counting.connected == 0
