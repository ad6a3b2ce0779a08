//! A skill that takes a file of any length and makes a large one. Neither is in memory whole.

use a2a_lambda::prelude::*;
use a2a_lambda::skill::{FilePart, FileReader};
use sha2::{Digest as _, Sha256};
use std::io::{self, Cursor, Read};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

/// Width and height of the picture.
const SIZE: u32 = 2048;
/// Width and height of one of its 8 x 8 cells.
const CELL: u32 = SIZE / 8;
/// Bytes of the headers of a BMP file.
const HEAD: u32 = 54;

/// Draws the fingerprint of a PDF or an image: a picture of 12 MB.
#[skill(
    id = "fingerprint",
    name = "Fingerprint",
    tags = ["example", "file", "image", "pdf"],
    input_modes = ["application/pdf", "image/*"],
    output_modes = ["image/bmp"],
    effect = "read",
)]
pub(crate) async fn fingerprint(cx: &mut TaskContext<'_>, file: FilePart) -> AgentResult<()> {
    let mut file = cx.open_file(&file).await?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        hash.update(piece.get(..read).unwrap_or_default());
    }
    let rows = FileReader::new(Rows::of(hash.finalize().into()));
    let picture = Artifact::from_file("fingerprint.bmp", "image/bmp", rows);
    cx.send_partial_artifact(picture).await
}

/// The picture of a digest, made row by row.
pub(crate) struct Rows {
    digest: [u8; 32],
    /// What is not read yet of the header or of a row.
    piece: Cursor<Vec<u8>>,
    next: u32,
}

impl Rows {
    pub(crate) fn of(digest: [u8; 32]) -> Self {
        let pixels = SIZE * SIZE * 3;
        let mut head = b"BM".to_vec();
        for number in [HEAD + pixels, 0, HEAD, HEAD - 14, SIZE, SIZE] {
            head.extend(number.to_le_bytes());
        }
        // One plane of 24 bits a pixel, not compressed.
        head.extend([1, 0, 24, 0]);
        for number in [0, pixels, 2835, 2835, 0, 0] {
            head.extend(number.to_le_bytes());
        }
        Self {
            digest,
            piece: Cursor::new(head),
            next: 0,
        }
    }

    /// One row of pixels. The picture is the same on the left and on the right.
    fn row(&self, y: u32) -> Vec<u8> {
        let color = self.digest.first_chunk::<3>().copied().unwrap_or_default();
        let line = usize::try_from(y / CELL).unwrap_or_default();
        let bits = self.digest.get(8 + line).copied().unwrap_or_default();
        (0..SIZE)
            .flat_map(|x| {
                let cell = x / CELL;
                let bit = cell.min(7 - cell);
                match (bits >> bit) & 1 {
                    0 => [0xF4; 3],
                    _ => color,
                }
            })
            .collect()
    }
}

impl AsyncRead for Rows {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = vec![0; space.remaining().min(64 * 1024)];
        let mut read = Read::read(&mut self.piece, &mut piece)?;
        if read == 0 && self.next < SIZE {
            self.piece = Cursor::new(self.row(self.next));
            self.next += 1;
            read = Read::read(&mut self.piece, &mut piece)?;
        }
        space.put_slice(piece.get(..read).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}
