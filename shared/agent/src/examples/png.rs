//! Writes a small picture as PNG (ISO/IEC 15948), without compression.

/// A picture of three bytes a pixel, row by row.
pub(crate) struct Picture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<[u8; 3]>,
}

/// The keyword of the text in a picture.
const KEYWORD: &str = "Description\0";
/// The most bytes of one stored block of zlib (RFC 1951, section 3.2.4).
const BLOCK: usize = 65_535;

impl Picture {
    /// The file, with `text` as its description (Latin letters).
    pub(crate) fn file(&self, text: &str) -> Vec<u8> {
        let mut file = vec![0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n'];
        let mut head = Vec::new();
        head.extend(self.width.to_be_bytes());
        head.extend(self.height.to_be_bytes());
        // 8 bits a color, RGB, one way of compression and of filters, no interlacing.
        head.extend([8, 2, 0, 0, 0]);
        chunk(&mut file, *b"IHDR", &head);
        chunk(&mut file, *b"tEXt", format!("{KEYWORD}{text}").as_bytes());
        chunk(&mut file, *b"IDAT", &zlib_stream(&self.rows()));
        chunk(&mut file, *b"IEND", &[]);
        file
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
    file.extend(crc(kind.iter().chain(content)).to_be_bytes());
}

/// CRC-32 as PNG uses it (annex D).
fn crc<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    let crc = bytes.fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
            0 => crc >> 1,
            _ => (crc >> 1) ^ 0xEDB8_8320,
        })
    });
    !crc
}

/// `bytes` as a stream of zlib (RFC 1950) of stored blocks.
fn zlib_stream(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let blocks = bytes.chunks(BLOCK);
    let last = blocks.len().saturating_sub(1);
    for (at, block) in blocks.enumerate() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(at == last));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    stream.extend(((b << 16) | a).to_be_bytes());
    stream
}
