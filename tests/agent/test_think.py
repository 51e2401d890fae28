"""The class that users subclass."""

import pytest

from perdure import ConfigurationError, Think
from perdure.agent.conversation import Conversation
from perdure.agent.think import bind
from perdure.session.transcript import Transcript
from tests.agent.services import RecordingServices


def test_an_agent_knows_its_name_and_its_messages() -> None:
    agent, transcript = Think(), Transcript()
    bind(agent, "alice%20b", Conversation(agent, RecordingServices(), transcript))
    assert agent.name == "alice%20b"
    assert agent.messages == []
    transcript.append("u1", "user", '{"id":"u1","role":"user","parts":[]}', None, 1)
    assert agent.messages == [{"id": "u1", "role": "user", "parts": []}]


def test_an_agent_that_was_made_by_calling_its_class_belongs_to_no_conversation() -> None:
    class Assistant(Think):
        pass

    assert Assistant().name == ""
    with pytest.raises(ConfigurationError, match="This Assistant belongs to no conversation"):
        _ = Assistant().messages


def test_agents_share_nothing() -> None:
    class Assistant(Think):
        pass

    one, other = Assistant(), Assistant()
    for agent, name in ((one, "one"), (other, "other")):
        transcript = Transcript()
        bind(agent, name, Conversation(agent, RecordingServices(), transcript))
        transcript.append(name, "user", f'{{"id":"{name}","role":"user","parts":[]}}', None, 1)
    assert [(agent.name, agent.messages[0]["id"]) for agent in (one, other)] == [("one", "one"), ("other", "other")]
