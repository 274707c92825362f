//! Columns of a SELECT are read by name: `selectable!` declares a struct whose fields stand beside their expressions. A position other
//! than the first depends on the text of a statement elsewhere. No crate has one.

use crate::sources::assert_none;

/// The reads of a [`chancery_store::Row`].
const READS: [&str; 10] =
    ["bool", "bytes", "cell", "get", "id", "int", "is_null", "optional_id", "optional_text", "text"];

#[test]
fn columns_are_read_by_name() {
    assert_none("declare the row with `selectable!`", |path, text| {
        let found = by_position(text).into_iter();
        found.map(|(line, read)| format!("{}:{line}: {read}", path.display())).collect()
    });
}

/// The lines with reads of a column after the first, and these reads.
fn by_position(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for read in READS {
            let call = format!("row.{read}(");
            let calls = line.split(&call).skip(1);
            let positions = calls.filter_map(|rest| rest.split([')', ',']).next()?.parse::<usize>().ok());
            found.extend(
                positions
                    .filter(|position| *position > 0)
                    .map(|position| (number + 1, format!("row.{read}({position})"))),
            );
        }
    }
    found
}

#[test]
fn reads_by_position_are_found() {
    let text =
        "let id = row.id(0)?;\nlet (name, end) = (row.text(1)?, row.optional_id(12)?);\nrow.text(column)";
    let found = by_position(text);
    assert_eq!(found, [(2, "row.optional_id(12)".to_owned()), (2, "row.text(1)".to_owned())]);
}
