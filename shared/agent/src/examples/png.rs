//! Writes a small picture as PNG (ISO/IEC 15948), without compression.

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write as _};

/// A picture of three bytes a pixel, row by row.
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<[u8; 3]>,
}

/// The keyword of the text in a picture.
const KEYWORD: &str = "Description\0";

impl Picture {
    /// The file, with `text` as its description (Latin letters).
    pub(crate) fn file(&self, text: &str) -> io::Result<Vec<u8>> {
        let mut file = vec![0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n'];
        let mut head = Vec::new();
        head.extend(self.width.to_be_bytes());
        head.extend(self.height.to_be_bytes());
        // 8 bits a color, RGB, one way of compression and of filters, no interlacing.
        head.extend([8, 2, 0, 0, 0]);
        chunk(&mut file, *b"IHDR", &head);
        chunk(&mut file, *b"tEXt", format!("{KEYWORD}{text}").as_bytes());
        let mut pixels = ZlibEncoder::new(Vec::new(), Compression::none());
        pixels.write_all(&self.rows())?;
        chunk(&mut file, *b"IDAT", &pixels.finish()?);
        chunk(&mut file, *b"IEND", &[]);
        Ok(file)
    }

    fn rows(&self) -> Vec<u8> {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX).max(1);
        let mut rows = Vec::new();
        for row in self.pixels.chunks(width) {
            // Each row begins with the number of its filter: none.
            rows.push(0);
            rows.extend(row.iter().flatten());
        }
        rows
    }
}

/// The description in a file of [`Picture::file`].
pub(crate) fn description(file: &[u8]) -> Option<&str> {
    let keyword = KEYWORD.as_bytes();
    let at = file.windows(keyword.len()).position(|it| it == keyword)?;
    // The length of a chunk stands before its type.
    let length = file.get(at.checked_sub(8)?..at.checked_sub(4)?)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    let text = file.get(at.checked_add(keyword.len())?..end)?;
    std::str::from_utf8(text).ok()
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], content: &[u8]) {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(content);
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(content);
    file.extend(crc.sum().to_be_bytes());
}
