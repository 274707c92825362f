//! Questionnaire items: questions that people answer when they sign in.

mod authority;
mod item;
mod quota;
mod submission;

use chancery_record::{
    DefaultValue, FIXED, Field, FieldType, KEY, Key, Kind, Mismatch, Name, OPEN, PatternText, Record as _,
    SHOWN, Token, Value, choice_types, id_types, record,
};
use chancery_resource::{
    Findings, Op, Parent, Problem, ProposedRow, Purpose, Reach, Rules, Shape, Tx, Unique, Violation, Writer,
    added, standard,
};
use uuid::Uuid;

pub use item::{Item, Member, check_item};
pub use submission::{AnswerFault, Finding, check_submission};

use crate::{
    slow_validation::validate_items,
    tenant::{TENANT, TenantId},
};

id_types! {
    /// The id of a questionnaire item.
    UserQuestionnaireItemId
}

choice_types! {
    /// The format of an answer.
    ValidationFormat {
        /// Anything.
        None,
        /// An e-mail address.
        Email,
        /// A telephone number by E.164.
        PhoneE164,
        /// A match of the pattern.
        Regex,
    }
}

/// A number of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub i64);

impl FieldType for Length {
    const KIND: Kind = Kind::Int { min: 0, max: 4000 };
    fn into_value(self) -> Value {
        Value::Int(self.0)
    }
    fn from_value(value: Value) -> Result<Self, Mismatch> {
        i64::from_value(value).map(Self)
    }
}

record! {
    /// An item of the questionnaire that users of a tenant fill in when they sign in.
    #[de(
        "Frage an Benutzer",
        "Fragen an Benutzer",
        "Eine Frage des Fragebogens, den Benutzer eines Mandanten bei der Anmeldung ausfüllen."
    )]
    pub struct UserQuestionnaireItem {
        /// The item.
        id: UserQuestionnaireItemId = KEY,
        /// The tenant.
        tenant_id: TenantId = FIXED,
        /// The key under which the answer is stored, unique in the tenant: the name of a user field or the key of an entry.
        #[de(
            _,
            "Der Schlüssel, unter dem die Antwort gespeichert wird, eindeutig im Mandanten: der Name eines Benutzerfelds oder der Schlüssel eines Eintrags."
        )]
        key: Key = OPEN,
        /// The text that users see.
        #[de("Beschriftung", "Der Text, den die Benutzer sehen.")]
        label: Name = OPEN,
        /// The position in the order.
        position: i64 = OPEN.or(DefaultValue::Int(0)),
        /// Whether the item must be answered. The id of an optional item must also be submitted.
        #[de("Erforderlich", "Ob die Frage beantwortet werden muss. Auch die Kennung einer freiwilligen Frage muss übermittelt werden.")]
        is_required: bool = OPEN.or(DefaultValue::Bool(true)),
        /// The minimum number of characters of an answer.
        #[de("Mindestlänge", "Die kleinste Anzahl von Zeichen einer Antwort.")]
        min_length: Option<Length> = OPEN,
        /// The maximum number of characters of an answer.
        #[de("Höchstlänge", "Die höchste Anzahl von Zeichen einer Antwort.")]
        max_length: Option<Length> = OPEN,
        /// The required format of an answer.
        #[de("Geprüft als", "Das vorgeschriebene Format einer Antwort.")]
        validation_format: ValidationFormat = OPEN.or(DefaultValue::Text("None")),
        /// The regular expression that an answer must match if validationFormat is Regex.
        #[de("Muster", "Der reguläre Ausdruck, dem eine Antwort entsprechen muss, wenn das Format ein Muster ist.")]
        validation_pattern: Option<PatternText> = OPEN,
        /// Concurrency token. It changes with every write to the item.
        concurrency_token: Token = SHOWN,
    }
}

impl UserQuestionnaireItem {
    /// The item without its record types.
    fn as_item(&self) -> Item {
        Item {
            id: self.id.0,
            key: self.key.as_str().to_owned(),
            label: self.label.as_str().to_owned(),
            is_required: self.is_required,
            min_length: self.min_length.map(|length| length.0),
            max_length: self.max_length.map(|length| length.0),
            format: self.validation_format,
            pattern: self.validation_pattern.as_ref().map(|pattern| pattern.as_str().to_owned()),
        }
    }
}

impl Rules for UserQuestionnaireItem {
    fn check(&self, wrong: &mut Findings) {
        for (member, detail) in check_item(&self.as_item()) {
            wrong.add(field_of(member), detail);
        }
    }
}

/// The shape of questionnaire items.
pub static USER_QUESTIONNAIRE_ITEM: Shape = Shape::of::<UserQuestionnaireItem>(
    "UserQuestionnaireItem",
    "user_questionnaire_item",
    Reach::Of(UserQuestionnaireItem::TENANT_ID.field(), &TENANT),
)
.belonging(&[Parent::new(UserQuestionnaireItem::TENANT_ID, &TENANT)])
.unique(&[
    Unique::new("user_questionnaire_item__id", &[UserQuestionnaireItem::ID.field()]),
    Unique::new(
        "user_questionnaire_item__tenant_id__key",
        &[UserQuestionnaireItem::TENANT_ID.field(), UserQuestionnaireItem::KEY.field()],
    ),
])
.ruled::<UserQuestionnaireItem>()
.validate_rows(check_rows)
.bumps_epoch();

const fn field_of(member: Member) -> &'static Field {
    match member {
        Member::MinLength => UserQuestionnaireItem::MIN_LENGTH.field(),
        Member::MaxLength => UserQuestionnaireItem::MAX_LENGTH.field(),
        Member::ValidationPattern => UserQuestionnaireItem::VALIDATION_PATTERN.field(),
    }
}

/// Validates the number of items and their patterns, and that the caller may administer the people.
fn check_rows(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    authority::check(writer, tx, rows)?;
    let mut violations = quota::check(tx, rows)?;
    let items = rows.iter().map(|row| UserQuestionnaireItem::from_values(row.values.clone()));
    // a new row gets another id in each run, and the second run compares the items with the validated ones
    let items = items.map(|item| Ok(Item { id: Uuid::nil(), ..item?.as_item() }));
    let items = items.collect::<Result<Vec<_>, Problem>>()?;
    violations.extend(validate_items(writer, Purpose::Pattern, items, |item| {
        item.weigh().map_err(|(member, detail)| vec![(field_of(member), detail)])
    })?);
    Ok(violations)
}

/// The operations on questionnaire items.
pub static OPERATIONS: [Op; 9] = added(standard!(
    "UserQuestionnaireItem",
    "/UserQuestionnaireItem",
    TenantAdmin,
    TenantAdmin,
    &USER_QUESTIONNAIRE_ITEM
));
