//! Quota of views for one owner: all of them are parsed together.

use std::collections::BTreeMap;

use chancery_presentation::location::{Kind, level_of, prefix};
use chancery_record::Value;
use chancery_resource::{ProposedRow, StoreError, Tx, Violation, selectable};

use super::CustomView;
use crate::{appearance::between, violation::violation_at};

/// The maximum number of views of one owner.
const MAX_VIEWS: usize = 100;
/// The maximum size of all views of one owner, in bytes.
const MAX_BYTES: usize = 2 << 20;

selectable! {
    /// The size of a stored view.
    struct ViewSize<'r> from "FROM custom_view WHERE location >= ?1 AND location < ?2" {
        location: &'r str = "location",
        bytes: i64 = "OCTET_LENGTH(content)",
    }
}

/// Reports rows that exceed the quota of their owner.
pub fn check(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, StoreError> {
    let mut of_owners: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        if let Some((level, id)) = row.text(CustomView::LOCATION).and_then(level_of) {
            of_owners.entry(prefix(Kind::View, level, id)).or_default().push(index);
        }
    }
    let mut violations = Vec::new();
    for (prefix, proposed) in of_owners {
        let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
        let bounds: [Value; 2] = between(&prefix);
        tx.query(ViewSize::SELECT, &bounds, |row| {
            let view = ViewSize::read(row)?;
            sizes.insert(view.location.to_owned(), usize::try_from(view.bytes).unwrap_or(usize::MAX));
            Ok(())
        })?;
        for index in proposed {
            let Some(row) = rows.get(index) else { continue };
            let location = row.text(CustomView::LOCATION).unwrap_or_default();
            let length = row.text(CustomView::CONTENT).unwrap_or_default().len();
            if !location.starts_with(&prefix) {
                continue;
            }
            sizes.insert(location.to_owned(), length);
            let bytes = sizes.values().fold(0, |sum: usize, size| sum.saturating_add(*size));
            if sizes.len() > MAX_VIEWS {
                let detail = format!(
                    "makes more than {MAX_VIEWS} views below {prefix}: delete some that are not used"
                );
                violations.push(violation_at(index, CustomView::LOCATION, detail));
            } else if bytes > MAX_BYTES {
                let detail =
                    format!("makes the views below {prefix} longer than 2 MiB together: make them shorter");
                violations.push(violation_at(index, CustomView::CONTENT, detail));
            }
        }
    }
    Ok(violations)
}
