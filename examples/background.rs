//! Work that continues behind the call, in steps.
//!
//! The call is answered at once, and a worker runs the turn. If its process dies, another one
//! continues behind the last finished step.

use a2a_lambda::SkillTest;
use a2a_lambda::prelude::*;
use std::error::Error;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts the books that were read.
#[derive(Clone, Default)]
struct Reader {
    books: Arc<AtomicU32>,
}

impl Reader {
    async fn open() -> Result<Self, io::Error> {
        Ok(Self::default())
    }

    /// The number of pages of a book.
    fn read(&self) -> u32 {
        self.books.fetch_add(1, Ordering::Relaxed);
        10
    }
}

/// Reads three books.
#[skill(id = "read", tags = ["books"], background = true)]
async fn read(cx: &mut TaskContext<'_>, reader: State<Reader>, shelf: String) -> AgentResult<u32> {
    let mut pages = 0;
    for book in 1..=3 {
        pages += cx.step("book", async { Ok(reader.read()) }).await?;
        let said = format!("{shelf}: {book} of 3");
        cx.send_intermediate_update(said).await?;
    }
    Ok(pages)
}

/// The process dies after the second book, and the skill reads no book twice.
async fn run() -> Result<String, Box<dyn Error>> {
    let agent = Agent::builder("library").state(Reader::open);
    let agent = agent.skill(read).build()?;
    let reader = Reader::default();
    let mut skill_test = SkillTest::new(&agent, "read");
    let reply = skill_test
        .state(reader.clone())
        .crash_after(3)
        .send("novels");
    let pages = reply.await?.artifact_data("read").ok_or("no artifact")?;
    let books = reader.books.load(Ordering::Relaxed);
    Ok(format!("{pages} pages, books read: {books}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    writeln!(io::stdout(), "{}", run().await?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_program_runs() {
        assert_eq!(super::run().await.unwrap(), "30 pages, books read: 3");
    }
}
