//! Security contacts: addresses of a user, verified by a code, that a recovery may rely on.

mod code;

use chancery_record::{
    DefaultValue, FIXED, HIDDEN, KEY, Name, OPEN, OWNER, Record as _, SHOWN, ShortText, Timestamp,
    choice_types, id_types, record,
};
use chancery_resource::{
    Action as A, Answer, Body, BodyForm, Call, Custom, Findings, Method as M, Op, Permit::UserStore, Problem,
    Reach, Rules, Shape, StoredRow, Tx, Unique, insert, new_row, owner_of, read_form, write_stored,
};

use uuid::Uuid;

use crate::{UserId, user::USER};

id_types! {
    /// The id of a security contact.
    ContactId
}

choice_types! {
    /// The kind of a contact.
    ContactKind {
        /// By e-mail.
        Email,
        /// By telephone.
        Phone,
    }
}

record! {
    /// A contact address at which a user can prove their identity.
    #[de("Sicherheitskontakt", "Sicherheitskontakte")]
    pub struct SecurityContact {
        /// The id of the security contact.
        #[de(_, "Die Kennung des Sicherheitskontakts.")]
        id: ContactId = KEY,
        /// The user.
        user_id: UserId = OWNER,
        /// The kind of contact.
        kind: ContactKind = FIXED,
        /// The e-mail address or telephone number.
        value: Name = FIXED.folded(),
        /// Whether the user has proved to own the contact.
        #[de("Bestätigt")]
        is_verified: bool = SHOWN.or(DefaultValue::Bool(false)),
        /// The date and time.
        #[de("Bestätigt am")]
        verified_on: Option<Timestamp> = SHOWN,
        /// When it was created.
        created_on: Option<Timestamp> = SHOWN,
        /// Who added it, if that was not the user.
        set_by: Option<Uuid> = HIDDEN,
    }
}

impl Rules for SecurityContact {
    fn check(&self, wrong: &mut Findings) {
        let fits = match self.kind {
            ContactKind::Email => chancery_record::Email::new(self.value.as_str()).err(),
            ContactKind::Phone => chancery_record::Phone::new(self.value.as_str()).err(),
        };
        if let Some(detail) = fits {
            wrong.add(Self::VALUE, detail);
        }
    }
}

record! {
    /// The verification code that was sent.
    pub struct ContactCode {
        /// The code.
        #[de("Code")]
        code: ShortText = OPEN,
    }
}

/// The shape of security contacts.
pub static SECURITY_CONTACT: Shape =
    Shape::of::<SecurityContact>("SecurityContact", "security_contact", Reach::Store)
        .owned(&USER, "user_rid")
        .ruled::<SecurityContact>()
        .noting_setter(SecurityContact::SET_BY, &[SecurityContact::VALUE.field()])
        .unique(&[
            Unique::new("security_contact__store__id", &[SecurityContact::ID.field()]),
            Unique::new("security_contact__user_rid__value_key", &[SecurityContact::VALUE.field()]),
        ]);

record! {
    /// A new security contact.
    pub struct NewContact {
        /// The kind of contact.
        kind: ContactKind = OPEN,
        /// The e-mail address or telephone number.
        value: Name = OPEN,
    }
}

static NEW: BodyForm = BodyForm::of::<NewContact>("NewSecurityContact");
static CODE: BodyForm = BodyForm::of::<ContactCode>("SecurityContactCode");

const ALL: &str = "/administration/User/{userId}/security-contact";
const ONE: &str = "/administration/User/{userId}/security-contact/{id}";

const fn op(name: &'static str, method: M, path: &'static str, action: A, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &SECURITY_CONTACT, action, summary).added()
}

/// The operations on security contacts.
pub static OPERATIONS: &[Op] = &[
    op("GetSecurityContacts", M::Get, ALL, A::List, "Lists a user's security contacts."),
    Op {
        status: 201,
        ..op(
            "CreateSecurityContact",
            M::Post,
            ALL,
            A::Custom(Custom::writing(create).taking(Body::Form(&NEW))),
            "Adds a security contact. A verification code is sent to the e-mail address or telephone number.",
        )
    },
    op("DeleteSecurityContact", M::Delete, ONE, A::Delete, "Deletes a security contact."),
    op(
        "VerifySecurityContact",
        M::Post,
        "/administration/User/{userId}/security-contact/{id}/verification",
        A::Custom(Custom::writing(code::verify).taking(Body::Form(&CODE))),
        "Verifies a security contact with the code that was sent to it.",
    ),
];

fn create(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let form: NewContact = read_form(call)?;
    let owner = owner_of(call, tx, &SECURITY_CONTACT)?.ok_or_else(|| Problem::not_found("User"))?;
    let kind = form.kind;
    let contact = SecurityContact {
        id: ContactId(call.context.new_id()),
        user_id: UserId(owner.id),
        kind,
        value: form.value,
        is_verified: false,
        verified_on: None,
        created_on: Some(call.context.now),
        set_by: None,
    };
    let values = new_row(&call.context, &SECURITY_CONTACT, Some(&owner), contact.clone().into_values())?;
    let texted = call.result::<code::TextedCode>();
    let is_texted = kind == ContactKind::Phone && !call.request.dry_run;
    // no code is sent to a number that the user has already: the insertion refuses it
    if is_texted && texted.is_none() && !code::is_known(tx, &owner, &contact)? {
        return code::text(&call.context, tx, &owner, &contact).map(Answer::after);
    }
    insert(&call.context, tx, &SECURITY_CONTACT, Some(&owner), &values)?;
    match (kind, texted) {
        (ContactKind::Email, _) => code::send(&call.context, tx, &owner, &contact)?,
        (ContactKind::Phone, Some(texted)) => {
            code::store_texted(&call.context, tx, &owner, &contact, &texted)?;
        }
        // a dry run sends nothing
        (ContactKind::Phone, None) => drop(code::gateway(&call.context, tx)?),
    }
    write_stored(
        call,
        tx,
        &SECURITY_CONTACT,
        &StoredRow { rid: 0, last_entry: 0, values, owner: Some(owner) },
    )?;
    Ok(Answer::resource(call.request.op.status))
}
