//! What is measured: a program, the event that it gets, and the floor it is compared with.

use crate::events;
use bytes::Bytes;

/// The event of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Card,
    Send,
    SendRpc,
    Get,
    GetRpc,
    FloorPut,
    FloorGet,
    /// A hundred chunks in a burst.
    Stream,
}

/// The text of a message.
const TEXT: &str = "How much are 19 and 23, please?";

impl Kind {
    /// The event number `n` of a process. `known` is the id of a stored item.
    pub(crate) fn event(self, n: &str, known: &str) -> Bytes {
        match self {
            Self::Card => events::card(),
            Self::Send => events::send(n, TEXT),
            Self::SendRpc => events::send_rpc(n, TEXT),
            Self::Get | Self::FloorGet => events::get(known),
            Self::GetRpc => events::get_rpc(known),
            Self::FloorPut => events::put(n, TEXT),
            Self::Stream => events::stream(n, "chunks 100"),
        }
    }

    /// What each response must contain.
    pub(crate) const fn says(self) -> &'static str {
        match self {
            Self::Card => "{",
            Self::Stream => "chunk",
            _ => "19 and 23",
        }
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) program: &'static str,
    pub(crate) kind: Kind,
    /// The name of the target it is compared with; its own for a floor.
    pub(crate) floor: &'static str,
}

const fn target(
    name: &'static str,
    program: &'static str,
    kind: Kind,
    floor: &'static str,
) -> Target {
    Target {
        name,
        program,
        kind,
        floor,
    }
}

pub(crate) const TARGETS: [Target; 12] = [
    target(
        "floor: fixed JSON",
        "floor",
        Kind::Card,
        "floor: fixed JSON",
    ),
    target(
        "`agent-card`",
        "agent-card",
        Kind::Card,
        "floor: fixed JSON",
    ),
    target("floor: put", "floor-dynamodb", Kind::FloorPut, "floor: put"),
    target("`tasks-send`: send", "tasks-send", Kind::Send, "floor: put"),
    target(
        "floor: put, streamed",
        "floor-dynamodb-stream",
        Kind::FloorPut,
        "floor: put, streamed",
    ),
    target("`rpc`: send", "rpc", Kind::SendRpc, "floor: put, streamed"),
    target("floor: get", "floor-dynamodb", Kind::FloorGet, "floor: get"),
    target(
        "floor: get, streamed",
        "floor-dynamodb-stream",
        Kind::FloorGet,
        "floor: get, streamed",
    ),
    target(
        "`tasks-get`: get",
        "tasks-get",
        Kind::Get,
        "floor: get, streamed",
    ),
    target("`rpc`: get", "rpc", Kind::GetRpc, "floor: get, streamed"),
    target(
        "floor: 100 events",
        "floor-stream",
        Kind::Stream,
        "floor: 100 events",
    ),
    target(
        "`tasks-stream`: 100 chunks",
        "stack-agent",
        Kind::Stream,
        "floor: 100 events",
    ),
];
