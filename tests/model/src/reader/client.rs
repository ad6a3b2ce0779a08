//! The client's stream: snapshot, tail, cut, resume.

use super::{Client, Event, Kind, LOG, Meta, Mode, Mutant, Reader, ReaderWorld};

/// The number of `EVT#` items that an older task of the same id left behind.
const LEFT_BEHIND: u8 = 2;

impl Client {
    fn add(&mut self, chunk: u8) {
        if let Some(place) = self.text.iter().position(|held| *held == 0) {
            self.text[place] = chunk;
        }
    }

    /// Without a first event the client has no position to resume from.
    pub(super) fn after_cut(&self) -> Mode {
        if self.last == 0 { Mode::New } else { Mode::Cut }
    }

    fn idle(&mut self, mode: Mode) {
        self.mode = mode;
        self.meta = Meta::default();
        self.items = 0;
    }
}

impl ReaderWorld {
    /// Shows the next event, and applies it to the artifact as a client does.
    pub(super) fn show(&mut self, event: Event) {
        let last = usize::from(self.client.last);
        if last >= LOG {
            return;
        }
        self.alien |= self.log[last] != event;
        self.client.last += 1;
        if event.kind == Kind::Replace {
            self.client.text = [0; 8];
        }
        if event.kind.chunk() {
            self.client.add(last as u8 + 1);
        }
    }

    /// The artifact as stored: META's base and the chunks up to its version.
    pub(super) fn artifact(&self, meta: &Meta) -> [u8; 8] {
        let mut client = Client::default();
        for (i, event) in self.log.iter().enumerate().skip(usize::from(meta.base)) {
            if event.kind.chunk() && event.version <= meta.version {
                client.add(i as u8 + 1);
            }
        }
        client.text
    }
}

impl Reader {
    /// Reads META consistently.
    pub(super) fn read_meta(&self, world: &mut ReaderWorld) -> Option<()> {
        let ended = world.ended();
        let meta = world.meta;
        let client = &mut world.client;
        match client.mode {
            Mode::New => client.mode = Mode::Snapshot,
            Mode::Tail => client.mode = Mode::MetaRead,
            Mode::Cut => {
                // The first frame of a resume: the status as of the last event the client saw.
                let past = usize::from(client.last);
                let known = world.log[..past].iter().any(|event| event.kind.terminal());
                let reported = if self.is(Mutant::ResumeShowsLater) {
                    ended
                } else {
                    known
                };
                world.shown_later |= reported && !known;
                if self.is(Mutant::ShownTwiceAfterResume) {
                    let again = world.log[past - 1];
                    world.show(again);
                }
                world.client.mode = Mode::Tail;
                return Some(());
            }
            _ => return None,
        }
        client.meta = meta;
        Some(())
    }

    /// Reads the snapshot's chunks up to META's version, and sends the frame.
    pub(super) fn read_chunks(&self, world: &mut ReaderWorld) -> Option<()> {
        if world.client.mode != Mode::Snapshot {
            return None;
        }
        let mut meta = world.client.meta;
        if self.is(Mutant::ChunksWithoutVersions) {
            meta.version = u8::MAX;
        }
        let text = world.artifact(&meta);
        let tail_from = if self.is(Mutant::TailAfterSecondRead) {
            world.meta
        } else {
            meta
        };
        let finished = meta.events > 0 && world.log[usize::from(meta.events) - 1].kind.terminal();
        let client = &mut world.client;
        client.text = text;
        client.from = meta.events;
        client.last = tail_from.events;
        client.idle(if finished { Mode::Ended } else { Mode::Tail });
        Some(())
    }

    fn items(world: &ReaderWorld) -> u16 {
        (1 << world.meta.moved) - 1
    }

    /// Reads the `EVT#` items of a poll, after META.
    pub(super) fn read_items(&self, world: &mut ReaderWorld) -> Option<()> {
        if world.client.mode != Mode::MetaRead {
            return None;
        }
        world.client.items = Self::items(world);
        self.show_poll(world, true);
        Some(())
    }

    pub(super) fn query_items(&self, world: &mut ReaderWorld) -> Option<()> {
        if world.client.mode != Mode::Tail {
            return None;
        }
        world.client.items = Self::items(world);
        world.client.mode = Mode::ItemsRead;
        Some(())
    }

    pub(super) fn query_meta(&self, world: &mut ReaderWorld) -> Option<()> {
        if world.client.mode != Mode::ItemsRead {
            return None;
        }
        world.client.meta = world.meta;
        self.show_poll(world, false);
        Some(())
    }

    /// Shows the events a poll has read: in order, without gaps, up to META's version.
    fn show_poll(&self, world: &mut ReaderWorld, meta_first: bool) {
        let (meta, items) = (world.client.meta, world.client.items);
        let embedded = |seq: u8| seq >= meta.moved && !self.is(Mutant::TailOverItemsOnly);
        let log = world.log;
        world.client.idle(Mode::Tail);
        for seq in world.client.last..meta.events {
            let stored = items & (1 << seq) != 0 || embedded(seq);
            let left_behind = self.is(Mutant::OtherIncarnationRead) && seq < LEFT_BEHIND;
            if left_behind && !stored {
                world.alien = true;
            }
            if stored {
                world.show(log[usize::from(seq)]);
            } else if !self.is(Mutant::NoSeqCheck) {
                break;
            }
        }
        if self.is(Mutant::OtherIncarnationRead) && world.client.last < LEFT_BEHIND {
            world.alien = true; // The client takes the old task's items for its next events.
        }
        world.left_out |= meta_first && world.client.last < meta.events;
        let last = usize::from(world.client.last);
        if last > 0 && log[last - 1].kind.terminal() {
            world.client.mode = Mode::Ended;
        }
    }

    pub(super) fn cut(&self, world: &mut ReaderWorld) -> Option<()> {
        let _ = self;
        if matches!(world.client.mode, Mode::New | Mode::Cut | Mode::Ended) {
            return None;
        }
        world.cuts = world.cuts.checked_sub(1)?;
        let mode = world.client.after_cut();
        world.client.idle(mode);
        Some(())
    }
}
