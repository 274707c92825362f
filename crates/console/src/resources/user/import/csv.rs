//! CSV as spreadsheets write it: separated by commas, semicolons or tabs, with quoted cells (RFC 4180).

/// A row of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    /// Its first line, from 1.
    pub line: usize,
    /// Its cells, trimmed.
    pub cells: Vec<String>,
}

/// Parses CSV and omits empty rows. The separator is the most frequent candidate in the first line.
///
/// # Errors
/// The line of an opening quote without a closing one.
pub fn read(text: &str) -> Result<Vec<Record>, usize> {
    let text = text.trim_start_matches('\u{feff}');
    let separator = separator(text.lines().next().unwrap_or_default());
    let mut reader =
        Reader { separator, records: Vec::new(), cells: Vec::new(), cell: String::new(), line: 1, begins: 1 };
    let (mut letters, mut quoted) = (text.chars().peekable(), None);
    while let Some(letter) = letters.next() {
        if letter == '\n' {
            reader.line += 1;
        }
        match letter {
            '"' if quoted.is_some() && letters.peek() == Some(&'"') => reader.cell.extend(letters.next()),
            '"' if quoted.is_some() => quoted = None,
            '"' if reader.cell.trim().is_empty() => quoted = Some(reader.line),
            _ if quoted.is_some() => reader.cell.push(letter),
            _ => reader.take(letter),
        }
    }
    if let Some(line) = quoted {
        return Err(line);
    }
    reader.end_record();
    Ok(reader.records)
}

fn separator(first: &str) -> char {
    let count = |separator: &char| first.matches(*separator).count();
    // the last one of equally frequent candidates
    ['\t', ';', ','].into_iter().max_by_key(count).unwrap_or(',')
}

struct Reader {
    separator: char,
    records: Vec<Record>,
    cells: Vec<String>,
    cell: String,
    line: usize,
    begins: usize,
}

impl Reader {
    /// Processes a character outside of quotes.
    fn take(&mut self, letter: char) {
        match letter {
            '\n' => self.end_record(),
            '\r' => {}
            _ if letter == self.separator => self.end_cell(),
            _ => self.cell.push(letter),
        }
    }

    fn end_cell(&mut self) {
        self.cells.push(std::mem::take(&mut self.cell).trim().to_owned());
    }

    fn end_record(&mut self) {
        self.end_cell();
        let (cells, line) = (std::mem::take(&mut self.cells), std::mem::replace(&mut self.begins, self.line));
        if cells.iter().any(|cell| !cell.is_empty()) {
            self.records.push(Record { line, cells });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    fn cells(text: &str) -> Vec<(usize, Vec<String>)> {
        read(text).unwrap().into_iter().map(|record| (record.line, record.cells)).collect()
    }

    fn row(line: usize, cells: &[&str]) -> (usize, Vec<String>) {
        (line, cells.iter().map(|cell| (*cell).to_owned()).collect())
    }

    #[test]
    fn spreadsheets_are_read() {
        assert_eq!(
            cells("a,b\r\n1, 2 \r\n\r\n,,\r\n3,4"),
            [row(1, &["a", "b"]), row(2, &["1", "2"]), row(5, &["3", "4"])]
        );
        assert_eq!(cells("\u{feff}a;b,c;d\n1;2;3\n"), [row(1, &["a", "b,c", "d"]), row(2, &["1", "2", "3"])]);
        assert_eq!(cells("a\tb\n1\t"), [row(1, &["a", "b"]), row(2, &["1", ""])]);
        assert_eq!(cells(""), []);
    }

    #[test]
    fn quoted_cells_may_contain_separators() {
        let text = "a,b\n\"x, \"\"y\"\"\",\"two\nlines\"\n5'10\",z";
        assert_eq!(
            cells(text),
            [row(1, &["a", "b"]), row(2, &["x, \"y\"", "two\nlines"]), row(4, &["5'10\"", "z"])]
        );
        assert_eq!(read("a\nb,\"c\nd"), Err(2));
    }
}
