//! What is measured: a program, the event that it gets, and the floor it is compared with.

use crate::events::{self, TEXT};
use bytes::Bytes;

/// The chunks of a stream. The program `floor-stream` sends as many events.
pub(crate) const CHUNKS: usize = 100;

/// The event of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Card,
    FloorCard,
    Send,
    SendRpc,
    Get,
    GetRpc,
    FloorPut,
    FloorGet,
    /// [`CHUNKS`] chunks in a burst.
    Stream,
}

impl Kind {
    /// The event number `n` of a process. `known` is the id of a stored item.
    pub(crate) fn event(self, n: &str, known: &str) -> Bytes {
        match self {
            Self::Card | Self::FloorCard => events::card(),
            Self::Send => events::send(n, TEXT),
            Self::SendRpc => events::send_rpc(n, TEXT),
            Self::Get | Self::FloorGet => events::get(known),
            Self::GetRpc => events::get_rpc(known),
            Self::FloorPut => events::put(n, TEXT),
            Self::Stream => events::stream(n, &format!("chunks {CHUNKS}")),
        }
    }

    /// What each response must contain.
    pub(crate) const fn says(self) -> &'static str {
        match self {
            // The floor has no card, and a card no such member.
            Self::Card => "supportedInterfaces",
            Self::FloorCard => "ok",
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
        Kind::FloorCard,
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
