//! A model of a stream and its log: a client sees each stored event once, in order.
//!
//! A turn emits one or two chunks of one artifact and ends. It may be taken over, run
//! again or cancelled. META embeds events; later commits move them out to `EVT#` items.
//! One client either receives the stream of the producing process or subscribes. Its
//! stream is cut at any point, and it resumes after the last event it saw.

mod client;
mod tests;
mod writer;

use stateright::{Model, Property};

/// The capacity of the log in this model.
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

/// A stored event; its index in the log is its number.
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
    /// The event was shown before its commit (a mutant).
    pub(crate) shown: bool,
    /// The log's length after the last commit that its stream has not shown yet.
    pub(crate) committed: u8,
}

/// The result of one read of META.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Meta {
    pub(crate) version: u8,
    /// The number of events, and how many of them are `EVT#` items.
    pub(crate) events: u8,
    pub(crate) moved: u8,
    /// Chunks up to this event no longer belong to the artifact.
    pub(crate) base: u8,
}

/// The state of the client's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// It receives the stream of the process that runs the turn.
    #[default]
    Producing,
    /// It has seen no event and will subscribe.
    New,
    /// A snapshot: META is read, the chunks are not.
    Snapshot,
    Tail,
    /// A poll: META is read, the `EVT#` items are not.
    MetaRead,
    /// A poll by one query: the `EVT#` items are read, META is not.
    ItemsRead,
    /// Cut; it will resume after the last event it saw.
    Cut,
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) mode: Mode,
    /// The number of events before the first one it was shown.
    pub(crate) from: u8,
    /// The last event it was shown.
    pub(crate) last: u8,
    pub(crate) meta: Meta,
    /// `EVT#` items of a poll, one bit each.
    pub(crate) items: u16,
    /// The artifact as the client holds it: the numbers of its chunks.
    /// The process that holds the turn, and one that lost it in a takeover.
    pub(crate) text: [u8; 8],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ReaderWorld {
    pub(crate) log: [Event; LOG],
    pub(crate) meta: Meta,
    pub(crate) epoch: u8,
    /// The process that holds the turn, and one that was taken over.
    pub(crate) writers: [Writer; 2],
    pub(crate) client: Client,
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    pub(crate) cuts: u8,
    /// A resume frame showed a later status than that of the client's last event.
    pub(crate) shown_later: bool,
    /// A poll ended without an event that its META had.
    pub(crate) left_out: bool,
    /// An event was shown that differs from the stored event of its number.
    pub(crate) alien: bool,
}

impl ReaderWorld {
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
    ResumeShowsLater,
    FencedCommits,
    ShownTwiceAfterResume,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) crashes: u8,
    pub(crate) glitches: u8,
    pub(crate) cuts: u8,
    /// Chunks that a run of the turn emits before it ends.
    pub(crate) chunks: u8,
    pub(crate) mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An event is shown before its commit (a mutant).
    ShowFirst,
    /// One conditional write of one or two events; with `true` it moves the events that META
    /// held out to `EVT#`.
    Commit(usize, u8, bool),
    /// The stream of this process shows the acknowledged events.
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
    type State = ReaderWorld;
    type Action = Action;

    fn init_states(&self) -> Vec<ReaderWorld> {
        let world = ReaderWorld {
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
            ..ReaderWorld::default()
        };
        let mut subscriber = world;
        subscriber.client.mode = Mode::New;
        vec![world, subscriber]
    }

    fn actions(&self, _: &ReaderWorld, actions: &mut Vec<Action>) {
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

    fn next_state(&self, last: &ReaderWorld, action: Action) -> Option<ReaderWorld> {
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
        type P = Property<Reader>;
        let mut all = vec![
            P::always("G7 a stream shows the log, in order, once", |_, w| {
                !w.alien && w.client.last <= w.meta.events
            }),
            P::always(
                "G7 a client that saw the end has the stored artifact",
                |_, w| {
                    let completed = w.log.iter().any(|event| event.kind == Kind::Completed);
                    let same = w.client.text == w.artifact(&w.meta);
                    w.client.mode != Mode::Ended || !completed || same
                },
            ),
            P::always("G7 a poll leaves nothing out", |_, w| !w.left_out),
            P::always("G7 a stream ends with the stored end", |_, w| {
                w.client.mode != Mode::Ended || (w.ended() && w.client.last == w.meta.events)
            }),
            P::always("G7 a resume shows no later status", |_, w| !w.shown_later),
            P::always("G2 nothing follows the end", |_, w| {
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
        type P = Property<Reader>;
        let mut all = vec![
            P::sometimes("a client sees the end without a cut", |m, w| {
                w.client.mode == Mode::Ended && w.client.from == 0 && w.cuts == m.cuts
            }),
            P::sometimes("all faults are spent and the end is seen", |_, w| {
                let spent = w.crashes + w.glitches + w.cuts == 0;
                spent && w.client.mode == Mode::Ended && w.client.last > w.client.from + 1
            }),
            P::sometimes("a turn restarts twice and completes", |_, w| {
                let restarts = w.log.iter().filter(|event| event.kind == Kind::Restarted);
                restarts.count() >= 2 && w.log.iter().any(|event| event.kind == Kind::Completed)
            }),
        ];
        if self.glitches > 0 {
            all.push(P::sometimes("a zombie outlives the task", |_, w| {
                w.ended() && w.writers[1].alive
            }));
        }
        all
    }
}
