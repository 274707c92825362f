//! Conversion of cells to field values.

use chancery_record::{Field, Kind};
use serde_json::{Value, json};

use crate::shell::fields::moment;

/// Words for true, and for false.
const YES: [&str; 6] = ["true", "yes", "ja", "wahr", "1", "x"];
const NO: [&str; 5] = ["false", "no", "nein", "falsch", "0"];

/// The value of a cell; `None` if it is invalid. Texts are validated by the API.
pub fn value(field: &Field, cell: &str) -> Option<Value> {
    let folded = cell.to_lowercase();
    Some(match field.kind {
        Kind::Bool if YES.contains(&folded.as_str()) => json!(true),
        Kind::Bool if NO.contains(&folded.as_str()) => json!(false),
        Kind::Bool => return None,
        Kind::Int { .. } => json!(cell.parse::<i64>().ok()?),
        Kind::Time => {
            let value = moment(&whole(cell));
            return value.as_str().is_some_and(|text| text.ends_with('Z')).then_some(value);
        }
        _ => json!(cell),
    })
}

/// A timestamp from a date, such as `2027-12-31` or `31.12.2027`, with or without a time.
fn whole(cell: &str) -> String {
    let parts: Vec<&str> = cell.split('.').collect();
    let day = match parts.as_slice() {
        [day, month, year] if year.len() == 4 => format!("{year}-{month:0>2}-{day:0>2}"),
        _ => cell.replacen(' ', "T", 1),
    };
    if day.len() == 10 { format!("{day}T00:00") } else { day }
}

/// The names of groups in a cell.
pub fn groups(cell: &str) -> impl Iterator<Item = &str> {
    cell.split([';', '|', '\n']).map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use chancery_userstore::user::USER;
    use serde_json::json;

    use super::{groups, value};

    #[test]
    fn cells_are_read_as_people_write_them() {
        let read = |wire: &str, cell: &str| {
            value(USER.fields.iter().find(|field| field.wire() == wire).unwrap(), cell)
        };
        assert_eq!(read("isUserActive", "Ja"), Some(json!(true)));
        assert_eq!(read("isUserActive", "0"), Some(json!(false)));
        assert_eq!(read("isUserActive", "maybe"), None);
        for day in ["2027-12-31", "31.12.2027", "2027-12-31 00:00", "2027-12-31T00:00:00Z"] {
            assert_eq!(read("userValidTo", day), Some(json!("2027-12-31T00:00:00.000Z")), "{day}");
        }
        assert_eq!(read("userValidTo", "soon"), None);
        assert_eq!(read("firstName", "Ada"), Some(json!("Ada")));
        assert_eq!(groups("Sales; R&D |").collect::<Vec<_>>(), ["Sales", "R&D"]);
    }
}
