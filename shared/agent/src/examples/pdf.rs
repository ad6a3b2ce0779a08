//! Writes lines of text as PDF 1.4 (ISO 32000-1), with a font that every reader has.

/// Lines of one page.
const PAGE: usize = 48;
/// The objects before the pages: the catalog, the list of pages, the font.
const FIRST_PAGE: usize = 4;

/// A file with these lines. Letters outside ASCII become `?`.
pub(crate) fn file(lines: &[String]) -> Vec<u8> {
    let pages: Vec<&[String]> = lines.chunks(PAGE).collect();
    let kids: Vec<String> = (0..pages.len())
        .map(|page| format!("{} 0 R", FIRST_PAGE + 2 * page))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Kids [{}] /Count {} >>",
            kids.join(" "),
            kids.len()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (at, lines) in pages.into_iter().enumerate() {
        let content = FIRST_PAGE + 2 * at + 1;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] \
             /Resources << /Font << /F1 3 0 R >> >> /Contents {content} 0 R >>"
        ));
        let stream = draw(lines);
        objects.push(format!(
            "<< /Length {} >>\nstream\n{stream}endstream",
            stream.len()
        ));
    }
    write_objects(&objects).into_bytes()
}

/// The lines of a file of [`file`].
pub(crate) fn lines(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(file);
    let lines = text.lines().filter_map(|line| {
        let line = line.strip_prefix('(')?.strip_suffix(") '")?;
        let line = line.replace("\\(", "(").replace("\\)", ")");
        Some(line.replace("\\\\", "\\"))
    });
    lines.collect()
}

fn draw(lines: &[String]) -> String {
    let mut text = "BT\n/F1 11 Tf\n15 TL\n56 786 Td\n".to_owned();
    for line in lines {
        text.push('(');
        for letter in line.chars() {
            match letter {
                '(' | ')' | '\\' => text.extend(['\\', letter]),
                ' '..='~' => text.push(letter),
                _ => text.push('?'),
            }
        }
        text.push_str(") '\n");
    }
    text.push_str("ET\n");
    text
}

/// The objects with their numbers, and the table with their places.
fn write_objects(objects: &[String]) -> String {
    let mut file = "%PDF-1.4\n".to_owned();
    let count = objects.len() + 1;
    let mut table = format!("xref\n0 {count}\n0000000000 65535 f \n");
    for (at, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = file.len();
    file.push_str(&table);
    file.push_str(&format!(
        "trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    ));
    file
}
