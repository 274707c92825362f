//! Records: fields with their kind, bounds and access, declared once by [`record!`]; JSON read strictly against
//! that table and written from it.
//!
//! This crate does no I/O and knows neither HTTP nor SQL.

mod access;
mod constant;
mod draft;
mod errors;
mod field;
mod fold;
mod german;
mod json;
mod lists;
mod mail_address;
mod mail_server;
mod nearest;
mod origin;
mod secret;
mod text;
mod time;
mod value;
mod write;

pub use access::{
    Access, Column, DERIVED, DefaultValue, FIXED, HIDDEN, KEY, OPEN, OWNER, SCOPE, SHOWN, Sealing,
};
pub use constant::{ends_with, is_same_text};
pub use draft::{Draft, Form, Others, Provided, read_draft, value_after_put, violation_of};
pub use errors::{FieldError, FieldErrors, MAX_ERRORS, pointer, shortened};
pub use field::{
    Field, Kind,
    field_of::FieldOf,
    field_type::{FieldType, Mismatch, Record},
};
pub use fold::fold;
pub use german::{German, GermanNames};
pub use json::{Json, JsonError, MAX_DEPTH, MAX_VALUES, read_json, read_json_within};
pub use lists::{ListRule, PairsRule, list_of, list_value, pairs_of, pairs_value};
pub use mail_address::MailAddress;
pub use mail_server::MailServerSettings;
pub use nearest::{misspelt, nearest};
pub use origin::{host_of, is_loopback_url, origin_of};
pub use secret::Secret;
pub use text::{
    Birthdate, CertificateName, Description, Email, EntryValue, Gender, GroupName, Identifier, JsonText,
    JwksText, Key, Label, Locale, LoginName, Name, OptionValue, PatternText, PersonalUrl, Phone, ScimExtra,
    ShortText, SignedText, TextRule, Token, Url, ViewText, WebAddress, Zone, is_hidden, is_web_url,
};
pub use time::{Timestamp, format_timestamp, parse_day, parse_timestamp};
pub use value::{Bytes, Cell, Encoding, Ids, Value, parse_id};
pub use write::{canonical_json, json_of, write_cell, write_string};

#[doc(hidden)]
pub use pastey;
#[doc(hidden)]
pub use uuid::Uuid;

/// Declares a resource once: a plain struct and, from the same lines, its field table and a typed handle for
/// each field.
///
/// ```
/// use chancery_record::{record, Name, Record as _, Token, KEY, OPEN, SHOWN, id_types};
/// id_types! { /// The id of a room.
///     RoomId }
/// record! {
///     /// A room with a door.
///     pub struct Room {
///         /// What the door says.
///         name: Name = OPEN,
///     }
/// }
/// // The expansion is the struct itself, `Room::FIELDS` (one `Field` a line: column name,
/// // kind, access, doc), `Room::NAME` (a `FieldOf<Room, Name>`), and the two conversions between
/// // the struct and its values.
/// assert_eq!(Room::FIELDS[0].column, "name");
/// let values = vec!["Ball room".into()];
/// assert_eq!(Room::NAME.get(&values), Name::new("Ball room").map_err(|_| unreachable!()));
/// ```
///
/// `#[de(..)]` after the documentation has the German texts for the console: of a field its label and its description, of a record
/// that is a resource its name in singular and plural and its description.
///
/// ```
/// use chancery_record::{record, Name, Record as _, OPEN};
/// record! {
///     /// A room with a door.
///     #[de("Raum", "Räume", "Ein Raum mit einer Tür.")]
///     pub struct Room {
///         /// What the door says.
///         #[de("Aufschrift", "Was auf der Tür steht.")]
///         name: Name = OPEN,
///     }
/// }
/// assert_eq!(Room::FIELDS[0].german.label, Some("Aufschrift"));
/// assert_eq!(Room::GERMAN.map(|names| names.many), Some("Räume"));
/// ```
///
/// A misspelt field does not compile, so that no rule or query can silently leave one out:
///
/// ```compile_fail,E0599
/// use chancery_record::{record, Name, OPEN};
/// record! {
///     /// A room with a door.
///     pub struct Room {
///         /// What the door says.
///         name: Name = OPEN,
///     }
/// }
/// let name = Room::NAEM;
/// ```
#[macro_export]
macro_rules! record {
    ($(#[doc = $about:literal])* $(#[de($($names:tt)+)])? $visibility:vis struct $name:ident {
        $($(#[doc = $doc:literal])* $(#[de($($german:tt)+)])? $field:ident : $kind:ty = $access:expr),* $(,)?
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility struct $name { $($(#[doc = $doc])* pub $field: $kind),* }

        const _: () = {
            #[expect(non_camel_case_types, reason = "they are called as the fields are")]
            enum FieldIndex { $($field),* }

            impl $crate::Record for $name {
                const TYPE_NAME: &'static str = concat!(module_path!(), "::", stringify!($name));
                const ABOUT: &'static str = concat!($($about),*);
                const GERMAN: Option<$crate::GermanNames> = $crate::german_names!($($($names)+)?);
                const FIELDS: &'static [$crate::Field] = &[$($crate::Field::new::<Self, $kind>(
                    FieldIndex::$field as usize, stringify!($field), concat!("", $($doc),*),
                    &$crate::german!($($($german)+)?), $access)),*];
                fn from_values(values: Vec<$crate::Value>) -> Result<Self, $crate::Mismatch> {
                    let mut values = values.into_iter();
                    Ok(Self { $($field: $crate::Field::take(stringify!($field), values.next())?),* })
                }
                fn into_values(self) -> Vec<$crate::Value> {
                    vec![$($crate::FieldType::into_value(self.$field)),*]
                }
            }

            $crate::pastey::paste! {
                #[allow(dead_code, clippy::allow_attributes, reason = "nobody needs all of them")]
                impl $name {
                    $($(#[doc = $doc])* $visibility const [<$field:upper>]: $crate::FieldOf<Self, $kind> =
                        $crate::FieldOf::at(FieldIndex::$field as usize);)*
                }
            }
        };
    };
}
