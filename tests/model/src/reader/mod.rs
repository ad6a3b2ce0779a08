//! A stream and its log: what a client is shown is what is stored, once.
//!
//! A turn emits one or two chunks of one artifact and ends; it is taken over, run
//! again or cancelled. Events are embedded in META and moved out to `EVT#`
//! items by later commits. One client either rides on the producing stream or
//! subscribes; it is cut at any point and resumes after the last event it saw.

mod client;
mod tests;
mod writer;

use stateright::{Model, Property};

/// Events a log can hold here.
pub(crate) const LOG: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    #[default]
    None,
    Append,
    Replace,
    Restarted,
    Completed,
    Canceled,
}

impl Kind {
    fn terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled)
    }

    fn chunk(self) -> bool {
        matches!(self, Self::Append | Self::Replace)
    }
}

/// A stored event; its number is its place in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) epoch: u8,
    pub(crate) version: u8,
}

/// A process that runs the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Writer {
    pub(crate) alive: bool,
    pub(crate) epoch: u8,
    /// Chunks it has emitted.
    pub(crate) chunks: u8,
    /// The event was shown although nothing is committed (a mutant).
    pub(crate) shown: bool,
    /// The log's length after its last commit, not yet shown on its stream.
    pub(crate) committed: u8,
}

/// What one read of META told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Meta {
    pub(crate) version: u8,
    /// Events in all, and how many of them are `EVT#` items.
    pub(crate) events: u8,
    pub(crate) moved: u8,
    /// Chunks up to this event are no part of the artifact any more.
    pub(crate) base: u8,
}

/// Where the client stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// It rides on the stream of the first process.
    #[default]
    Producing,
    /// It has nothing and will subscribe.
    New,
    /// A snapshot: META is read, the chunks are not.
    Snapshot,
    Tail,
    /// A poll: META is read, the `EVT#` items are not.
    MetaRead,
    /// A poll by one query: the `EVT#` items are read, META is not.
    ItemsRead,
    /// Cut; it will resume after its last event.
    Cut,
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) mode: Mode,
    /// The event before the first it was shown.
    pub(crate) from: u8,
    /// The last event it was shown.
    pub(crate) last: u8,
    pub(crate) meta: Meta,
    /// `EVT#` items of a poll, one bit each.
    pub(crate) items: u16,
    /// The artifact as the client holds it: numbers of its chunks.
    pub(crate) text: [u8; 8],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) log: [Event; LOG],
    pub(crate) meta: Meta,
    pub(crate) epoch: u8,
    /// The process that holds the turn, and one that was taken over.
    pub(crate) writers: [Writer; 2],
    pub(crate) client: Client,
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    pub(crate) cuts: u8,
    /// A resume frame told a later status than that of its event.
    pub(crate) told_later: bool,
    /// A poll ended without an event which its META had.
    pub(crate) left_out: bool,
    /// An event was shown which is not the stored event of its number.
    pub(crate) alien: bool,
}

impl World {
    pub(crate) fn ended(&self) -> bool {
        let last = usize::from(self.meta.events).checked_sub(1);
        last.is_some_and(|last| self.log[last].kind.terminal())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    ShownBeforeCommit,
    TailAfterSecondRead,
    TailOverItemsOnly,
    NoSeqCheck,
    ChunksWithoutVersions,
    OtherIncarnationRead,
    NewEpochAppends,
    ResumeTellsLater,
    FencedCommits,
    ShownTwiceAfterResume,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    pub(crate) cuts: u8,
    /// Chunks a run of the turn emits before it ends.
    pub(crate) chunks: u8,
    pub(crate) mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An event is shown before its commit (a mutant).
    ShowFirst,
    /// One conditional write of one or two events; `true` moves what META held
    /// out to `EVT#`.
    Commit(usize, u8, bool),
    /// The stream of this process shows what was acknowledged.
    Show(usize),
    Crash,
    TakeOver,
    Cancel,
    /// Reads META for a snapshot, a poll or a resume.
    ReadMeta,
    ReadChunks,
    ReadItems,
    /// The `EVT#` half of one query over both, then its META half.
    QueryItems,
    QueryMeta,
    Cut,
}

impl Model for Reader {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let world = World {
            epoch: 1,
            meta: Meta {
                version: 1,
                ..Meta::default()
            },
            writers: [
                Writer {
                    alive: true,
                    epoch: 1,
                    ..Writer::default()
                },
                Writer::default(),
            ],
            crashes: self.crashes,
            glitches: self.glitches,
            cuts: self.cuts,
            ..World::default()
        };
        let mut subscriber = world;
        subscriber.client.mode = Mode::New;
        vec![world, subscriber]
    }

    fn actions(&self, _: &World, actions: &mut Vec<Action>) {
        for i in 0..2 {
            actions.push(Action::Show(i));
            for group in 1..=2 {
                actions.extend([false, true].map(|moves| Action::Commit(i, group, moves)));
            }
        }
        actions.extend([
            Action::ShowFirst,
            Action::Crash,
            Action::TakeOver,
            Action::Cancel,
            Action::Cut,
        ]);
        actions.extend([Action::ReadMeta, Action::ReadChunks, Action::ReadItems]);
        actions.extend([Action::QueryItems, Action::QueryMeta]);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = *last;
        match action {
            Action::ShowFirst => self.show_first(&mut world),
            Action::Commit(i, group, moves) => self.commit(&mut world, i, group, moves),
            Action::Show(i) => self.show_committed(&mut world, i),
            Action::Crash => self.crash(&mut world),
            Action::TakeOver => self.take_over(&mut world),
            Action::Cancel => self.cancel(&mut world),
            Action::ReadMeta => self.read_meta(&mut world),
            Action::ReadChunks => self.read_chunks(&mut world),
            Action::ReadItems => self.read_items(&mut world),
            Action::QueryItems => self.query_items(&mut world),
            Action::QueryMeta => self.query_meta(&mut world),
            Action::Cut => self.cut(&mut world),
        }?;
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(
                "G7 what is shown is the log, in order, once",
                |_, w: &World| !w.alien && w.client.last <= w.meta.events,
            ),
            Property::always(
                "G7 who saw the end has the stored artifact",
                |_, w: &World| {
                    let completed = w.log.iter().any(|event| event.kind == Kind::Completed);
                    let same = w.client.text == w.artifact(&w.meta);
                    w.client.mode != Mode::Ended || !completed || same
                },
            ),
            Property::always("G7 a poll leaves nothing out", |_, w: &World| !w.left_out),
            Property::always("G7 a stream ends with the stored end", |_, w: &World| {
                w.client.mode != Mode::Ended || (w.ended() && w.client.last == w.meta.events)
            }),
            Property::always("G7 a resume tells no later status", |_, w: &World| {
                !w.told_later
            }),
            Property::always("G2 nothing follows the end", |_, w: &World| {
                let ends = w.log.iter().filter(|event| event.kind.terminal()).count();
                ends == 0 || (ends == 1 && w.ended())
            }),
        ];
        if self.mutant.is_none() {
            all.extend(self.seen());
        }
        all
    }
}

impl Reader {
    fn seen(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::sometimes(
                "a client rides to the end without a cut",
                |m: &Self, w: &World| {
                    w.client.mode == Mode::Ended && w.client.from == 0 && w.cuts == m.cuts
                },
            ),
            Property::sometimes("all is spent and the end is seen", |_, w: &World| {
                let spent = w.crashes + w.glitches + w.cuts == 0;
                spent && w.client.mode == Mode::Ended && w.client.last > w.client.from + 1
            }),
            Property::sometimes("a turn restarts twice and completes", |_, w: &World| {
                let restarts = w.log.iter().filter(|event| event.kind == Kind::Restarted);
                restarts.count() >= 2 && w.log.iter().any(|event| event.kind == Kind::Completed)
            }),
        ];
        if self.glitches > 0 {
            all.push(Property::sometimes(
                "a zombie outlives the task",
                |_, w: &World| w.ended() && w.writers[1].alive,
            ));
        }
        all
    }
}
