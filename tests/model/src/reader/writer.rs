//! The processes that run the turn and write the log.

use super::{Event, Kind, Mode, Mutant, Reader, ReaderWorld, Writer};

impl Reader {
    pub(super) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// The next event of the run.
    fn emits(&self, writer: &Writer) -> Kind {
        let replaces = !self.is(Mutant::NewEpochAppends) || writer.epoch == 1;
        match writer.chunks {
            all if all == self.chunks => Kind::Completed,
            0 if replaces => Kind::Replace,
            _ => Kind::Append,
        }
    }

    /// Shows the event before its commit (a mutant).
    pub(super) fn show_first(&self, world: &mut ReaderWorld) -> Option<()> {
        let writer = world.writers[0];
        let rides = writer.alive && Self::producing(world, 0);
        if !self.is(Mutant::ShownBeforeCommit) || !rides || writer.shown {
            return None;
        }
        world.writers[0].shown = true;
        let version = world.meta.version + 1;
        world.show(Event {
            kind: self.emits(&writer),
            epoch: writer.epoch,
            version,
        });
        Some(())
    }

    /// Appends events in one commit.
    fn append(world: &mut ReaderWorld, kinds: &[Kind], epoch: u8, moves: bool) {
        world.meta.version += 1;
        if moves {
            world.meta.moved = world.meta.events;
        }
        for &kind in kinds.iter().filter(|kind| **kind != Kind::None) {
            let version = world.meta.version;
            world.log[usize::from(world.meta.events)] = Event {
                kind,
                epoch,
                version,
            };
            world.meta.events += 1;
        }
    }

    pub(super) fn commit(
        &self,
        world: &mut ReaderWorld,
        i: usize,
        group: u8,
        moves: bool,
    ) -> Option<()> {
        let mut writer = world.writers[i];
        let waits = writer.committed > 0;
        if !writer.alive || waits || (moves && world.meta.moved == world.meta.events) {
            return None;
        }
        let mut kinds = [Kind::None; 2];
        for kind in kinds.iter_mut().take(usize::from(group)) {
            *kind = self.emits(&writer);
            writer.chunks += 1;
        }
        if kinds[0] == Kind::Completed && group == 2 {
            return None;
        }
        let held = writer.epoch == world.epoch && !world.ended();
        let room = usize::from(world.meta.events) + 2 < super::LOG;
        let commits = held || (self.is(Mutant::FencedCommits) && room);
        if !commits {
            // Fenced out: its stream becomes a tail and shows the stored end.
            if moves || group == 2 {
                return None;
            }
            if Self::producing(world, i) {
                world.client.mode = Mode::Tail;
            }
            world.writers[i] = Writer::default();
            return Some(());
        }
        Self::append(world, &kinds, writer.epoch, moves);
        writer.shown = false;
        if Self::producing(world, i) {
            writer.committed = world.meta.events;
        } else {
            writer.alive = !world.ended();
        }
        world.writers[i] = writer;
        Some(())
    }

    /// Whether the client receives the stream of this process. It stays with the process that
    /// began the turn, even after a takeover.
    fn producing(world: &ReaderWorld, i: usize) -> bool {
        world.client.mode == Mode::Producing && (i == 1) == (world.writers[0].epoch != 1)
    }

    /// The commit is acknowledged: the process shows its events on its own stream.
    pub(super) fn show_committed(&self, world: &mut ReaderWorld, i: usize) -> Option<()> {
        let _ = self;
        let writer = world.writers[i];
        if !writer.alive || writer.committed == 0 {
            return None;
        }
        world.writers[i].committed = 0;
        let rides = Self::producing(world, i);
        while rides && world.client.last < writer.committed {
            let event = world.log[usize::from(world.client.last)];
            world.show(event);
        }
        if world.log[usize::from(writer.committed) - 1].kind.terminal() {
            if rides {
                world.client.mode = Mode::Ended;
            }
            world.writers[i].alive = false;
        }
        Some(())
    }

    /// The process that holds the turn dies, and its stream with it.
    pub(super) fn crash(&self, world: &mut ReaderWorld) -> Option<()> {
        let _ = self;
        if !world.writers[0].alive {
            return None;
        }
        world.crashes = world.crashes.checked_sub(1)?;
        if Self::producing(world, 0) {
            world.client.mode = world.client.after_cut();
        }
        world.writers[0] = Writer {
            epoch: world.writers[0].epoch,
            ..Writer::default()
        };
        Some(())
    }

    /// Another process claims the turn. It starts again from its base, without the artifact,
    /// and records a restart event.
    pub(super) fn take_over(&self, world: &mut ReaderWorld) -> Option<()> {
        let _ = self;
        if world.ended() {
            return None;
        }
        if world.writers[0].alive {
            if world.writers[1].alive {
                return None;
            }
            world.glitches = world.glitches.checked_sub(1)?;
            world.writers[1] = world.writers[0];
        }
        world.epoch += 1;
        let epoch = world.epoch;
        let emitted = world.log.iter().any(|event| event.kind.chunk());
        Self::append(
            world,
            if emitted { &[Kind::Restarted] } else { &[] },
            epoch,
            false,
        );
        world.meta.base = world.meta.events;
        world.writers[0] = Writer {
            alive: true,
            epoch,
            ..Writer::default()
        };
        Some(())
    }

    pub(super) fn cancel(&self, world: &mut ReaderWorld) -> Option<()> {
        let _ = self;
        if world.ended() {
            return None;
        }
        world.epoch += 1;
        let epoch = world.epoch;
        Self::append(world, &[Kind::Canceled], epoch, false);
        Some(())
    }
}
