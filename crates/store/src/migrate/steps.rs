//! The steps of a migration on PostgreSQL while servers run: each step locks few tables for a short time.

use std::collections::BTreeSet;

use super::{Migration, text_for};

/// The migrations that were published before migrations ran in steps. Some lock dozens of tables, so each
/// statement has its own transaction.
const ONE_BY_ONE: std::ops::RangeInclusive<i64> = 19..=50;

/// A part of a migration whose completion is recorded, so that an interrupted migration continues after it.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Statements that run in one transaction.
    Transaction(String),
    /// An index on a table in use. It is built with `CREATE INDEX CONCURRENTLY`, which cannot run in a
    /// transaction.
    Index { name: String, statement: String },
    /// A statement over many rows, which runs in chunks.
    Fill(String, &'static Fill),
}

/// A statement of a migration that changes many rows and so runs in chunks, in the order of a key. It ends with
/// a condition, to which the range of a chunk is appended.
#[derive(Debug, PartialEq, Eq)]
pub struct Fill {
    version: i64,
    /// The prefix of the statement.
    prefix: &'static str,
    /// The table whose rows it reads, and its key: a non-negative integer.
    pub table: &'static str,
    pub key: &'static str,
    /// The alias of the table in the statement.
    alias: &'static str,
}

/// The statements that change many rows. Add those of new migrations.
const FILLS: &[Fill] = &[
    Fill {
        version: 43,
        prefix: "UPDATE outbox_event",
        table: "outbox_event",
        key: "id",
        alias: "outbox_event",
    },
    Fill { version: 43, prefix: "INSERT INTO event_pending", table: "outbox_event", key: "id", alias: "o" },
];

impl Fill {
    /// The statement for the rows whose key is above the first number and at most the second.
    pub fn chunk(&self, statement: &str, above: i64, up_to: i64) -> String {
        let Self { alias, key, .. } = self;
        format!("{statement} AND {alias}.{key} > {above} AND {alias}.{key} <= {up_to}")
    }
}

/// The remaining steps of a migration after this many of its statements, each with the number of statements
/// finished after it.
pub fn steps(migration: &Migration, done: usize) -> Vec<(usize, Step)> {
    let statements = statements(&text_for(migration, true));
    let created_tables: BTreeSet<&str> = statements
        .iter()
        .filter_map(|text| text.strip_prefix("CREATE TABLE ")?.split([' ', '(']).next())
        .collect();
    let mut steps: Vec<(usize, Step)> = Vec::new();
    for (number, text) in statements.iter().enumerate().skip(done) {
        let step = step(migration.version, text, &created_tables);
        match (steps.last_mut(), step) {
            (Some((after, Step::Transaction(before))), Step::Transaction(text))
                if !ONE_BY_ONE.contains(&migration.version) =>
            {
                before.push_str(&text);
                *after = number + 1;
            }
            (_, step) => steps.push((number + 1, step)),
        }
    }
    steps
}

fn step(version: i64, text: &str, created_tables: &BTreeSet<&str>) -> Step {
    let words: Vec<&str> = text.split([' ', '(']).collect();
    let index = match words.as_slice() {
        ["CREATE", "INDEX", name, "ON", table, ..] | ["CREATE", "UNIQUE", "INDEX", name, "ON", table, ..] => {
            Some((*name, *table))
        }
        _ => None,
    };
    match index {
        Some((name, table)) if !created_tables.contains(table) => Step::Index {
            name: name.to_owned(),
            statement: text.replacen(" INDEX ", " INDEX CONCURRENTLY ", 1),
        },
        _ => match FILLS.iter().find(|fill| fill.version == version && text.starts_with(fill.prefix)) {
            Some(fill) => Step::Fill(text.to_owned(), fill),
            None => Step::Transaction(format!("{text};")),
        },
    }
}

/// The statements of a text, without comments, each on one line.
fn statements(text: &str) -> Vec<String> {
    let (mut all, mut statement, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '-' if !is_quoted && rest.peek() == Some(&'-') => {
                while rest.peek().is_some_and(|letter| *letter != '\n') {
                    rest.next();
                }
            }
            ';' if !is_quoted => all.push(std::mem::take(&mut statement)),
            _ => {
                is_quoted ^= letter == '\'';
                let is_blank = letter.is_whitespace() && !is_quoted;
                if !(is_blank && (statement.is_empty() || statement.ends_with(' '))) {
                    statement.push(if is_blank { ' ' } else { letter });
                }
            }
        }
    }
    all.push(statement);
    all.retain(|statement| !statement.trim().is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::{FILLS, Fill, Migration, Step, statements, steps};
    use crate::migrate::{MIGRATIONS, text_for};

    const fn migration(version: i64, text: &'static str) -> Migration {
        Migration { version, name: "test", text }
    }

    const TEXT: &str = "CREATE TABLE a (\n    -- it's; a comment\n    b {int} NOT NULL\n);
        CREATE INDEX a__b ON a (b);\nALTER TABLE c ADD COLUMN d {int};
        CREATE UNIQUE INDEX c__d ON c (d) WHERE d IS NOT NULL;
        INSERT INTO c (d) VALUES ('x; -- y');\n{on_sqlite} DROP TABLE c;\n";

    fn transaction(text: &str) -> Step {
        Step::Transaction(text.to_owned())
    }

    #[test]
    fn indexes_on_existing_tables_are_built_concurrently() {
        let table = "CREATE TABLE a ( b BIGINT NOT NULL );";
        let index = "CREATE INDEX a__b ON a (b);";
        let column = "ALTER TABLE c ADD COLUMN d BIGINT;";
        let built = || Step::Index {
            name: "c__d".to_owned(),
            statement: "CREATE UNIQUE INDEX CONCURRENTLY c__d ON c (d) WHERE d IS NOT NULL".to_owned(),
        };
        let row = || transaction("INSERT INTO c (d) VALUES ('x; -- y');");
        let one_by_one = [
            (1, transaction(table)),
            (2, transaction(index)),
            (3, transaction(column)),
            (4, built()),
            (5, row()),
        ];
        assert_eq!(steps(&migration(19, TEXT), 0), one_by_one);
        let together = transaction(&format!("{table}{index}{column}"));
        assert_eq!(steps(&migration(51, TEXT), 0), [(3, together), (4, built()), (5, row())]);
    }

    #[test]
    fn finished_statements_are_skipped() {
        for version in [19, 51] {
            let left = steps(&migration(version, TEXT), 2);
            assert_eq!(left.first(), Some(&(3, transaction("ALTER TABLE c ADD COLUMN d BIGINT;"))));
            assert_eq!(left.len(), 3);
            assert_eq!(steps(&migration(version, TEXT), 5), []);
        }
    }

    #[test]
    fn statements_over_many_rows_have_a_condition_to_add_to() {
        for fill in FILLS {
            let migration = MIGRATIONS.iter().find(|migration| migration.version == fill.version).unwrap();
            let texts = steps(migration, 0).into_iter().filter_map(|(_, step)| match step {
                Step::Fill(text, of) if of == fill => Some(text),
                _ => None,
            });
            let [text] = texts.collect::<Vec<_>>().try_into().unwrap();
            assert!(text.contains(" WHERE ") && !text.contains(" ORDER BY ") && !text.contains(" GROUP BY "));
            let chunk = fill.chunk(&text, 3, 7);
            assert!(chunk.ends_with(&format!("AND {0}.id > 3 AND {0}.id <= 7", fill.alias)), "{chunk}");
        }
    }

    /// Migrations that write few rows, such as those of settings, client apps and processes.
    const FEW: [(i64, &str); 8] = [
        (21, "INSERT INTO resource_owner"),
        (30, "INSERT INTO kept_controller"),
        (43, "INSERT INTO event_trail"),
        (43, "UPDATE job_lease"),
        (43, "DELETE FROM job_lease"),
        (64, "INSERT INTO option_value"),
        (64, "UPDATE option_value"),
        (81, "INSERT INTO audit_compaction"),
    ];

    /// A new migration that writes rows must be listed, either in `FILLS` or as one with few rows.
    #[test]
    fn a_migration_writes_many_rows_in_chunks() {
        for migration in MIGRATIONS.iter().filter(|migration| migration.version >= 19) {
            for text in statements(&text_for(migration, true)) {
                let writes =
                    ["INSERT ", "UPDATE ", "DELETE ", "WITH "].iter().any(|word| text.starts_with(word));
                let inserts_values = text.starts_with("INSERT ") && text.contains(") VALUES (");
                let known =
                    |version: i64, prefix: &str| version == migration.version && text.starts_with(prefix);
                let is_known = FILLS.iter().any(|fill: &Fill| known(fill.version, fill.prefix))
                    || FEW.iter().any(|(version, prefix)| known(*version, prefix));
                assert!(!writes || inserts_values || is_known, "{}: {text}", migration.name());
            }
        }
    }

    /// These statements lock a table for as long as reading or rewriting it takes.
    #[test]
    fn no_migration_rewrites_or_reads_a_table_that_it_locks() {
        let slow =
            [" TYPE ", " SET NOT NULL", " ADD CONSTRAINT ", " ADD PRIMARY KEY", " VALIDATE ", " REFERENCES "];
        for migration in MIGRATIONS.iter().filter(|migration| migration.version >= 19) {
            for text in statements(&text_for(migration, true)) {
                let is_slow = text.starts_with("ALTER TABLE ") && slow.iter().any(|word| text.contains(word));
                assert!(!is_slow, "{}: {text}", migration.name());
            }
        }
    }
}
