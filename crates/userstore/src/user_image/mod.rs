//! A user's image: checked, stripped of metadata and encoded anew before it is stored.

use chancery_picture::{MAX_BODY_BYTES, Picture, PictureRefusal, normalize, parse};
use chancery_record::{FieldError, KEY, Name, OWNER, Record as _, SHOWN, Token, Value, id_types, record};
use chancery_resource::{
    Action as A, Answer, AuditAction, Body, Call, Custom, Method as M, Op, OwnerRow, Permit::UserStore,
    Problem, ProblemKind, Purpose, Reach, Reply, Shape, StateTable, StoredRow, Tx, Work, audit_trail::Digest,
    check_if_match, delete, insert, load_by, new_row, owner_of, read_one, select_of, selectable,
    update_unversioned, write_stored,
};

use crate::{UserId, user::USER};

id_types! {
    /// The id of an image.
    ImageId
}

record! {
    /// The properties of a user's image. The image itself is at `image/content`.
    #[de("Bild eines Benutzers", "Bilder von Benutzern")]
    pub struct UserImage {
        /// The id of the image.
        #[de(_, "Die Kennung des Bildes.")]
        id: ImageId = KEY,
        /// The user.
        user_id: UserId = OWNER,
        /// Its media type.
        #[de("Medientyp")]
        content_type: Name = SHOWN.like("image/png"),
        /// The size of the stored image in bytes.
        #[de("Größe in Byte")]
        size_bytes: i64 = SHOWN,
        /// The SHA-256 hash over the bytes of the image.
        #[de("SHA-256")]
        sha256: Digest = SHOWN,
        /// Concurrency token. It changes with every new image.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of user images.
pub static USER_IMAGE: Shape =
    Shape::of::<UserImage>("UserImage", "user_image", Reach::Store).owned(&USER, "user_rid").open();

const ONE: &str = "/administration/User/{userId}/image";
const CONTENT: &str = "/administration/User/{userId}/image/content";
const TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];
const BODIES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/gif",
    "application/octet-stream",
    "multipart/form-data",
    "application/json",
];

const fn op(name: &'static str, method: M, path: &'static str, custom: Custom, summary: &'static str) -> Op {
    Op::new(name, method, path, UserStore, &USER_IMAGE, A::Custom(custom), summary)
}

/// The operations on user images.
pub static OPERATIONS: &[Op] = &[
    op("GetUserImage", M::Get, ONE, Custom::reading(read), "Reads the properties of a user's image."),
    op(
        "SetUserImage",
        M::Put,
        ONE,
        Custom::working(Purpose::Image, set).taking(Body::Bytes(BODIES, MAX_BODY_BYTES)),
        "Sets a user's image: PNG, JPEG, WebP or GIF, up to 1 MiB. It is stored without metadata.",
    ),
    op(
        "DeleteUserImage",
        M::Delete,
        ONE,
        Custom::writing(remove).replying(Reply::Empty),
        "Deletes a user's image.",
    )
    .answering(204, Reply::Empty),
    op(
        "GetUserImageContent",
        M::Get,
        CONTENT,
        Custom::reading(content).replying(Reply::Content(TYPES)),
        "Reads the content of a user's image.",
    )
    .added(),
];

fn owner(call: &Call, tx: &mut Tx<'_>) -> Result<OwnerRow, Problem> {
    owner_of(call, tx, &USER_IMAGE)?.ok_or_else(|| Problem::not_found("User"))
}

fn find(call: &Call, tx: &mut Tx<'_>, owner: &OwnerRow) -> Result<StoredRow, Problem> {
    load_by(&call.context, tx, &USER_IMAGE, Some(owner), &select_of(&call.context, &USER_IMAGE, owner))
}

fn read(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner(call, tx)?;
    let sql = select_of(&call.context, &USER_IMAGE, &owner);
    read_one(call, tx, &USER_IMAGE, Some(&owner), &sql)
}

selectable! {
    /// The content of an image.
    struct ImageContent<'r> from "FROM user_image i JOIN user_image_content c \
        ON c.user_rid = i.user_rid WHERE i.user_rid = ?1" {
        kind: &'r str = "i.content_type",
        bytes: &'r [u8] = "c.content",
    }
}

fn content(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner(call, tx)?;
    let mut kind = None;
    let out = &mut call.answer.bytes;
    tx.query(ImageContent::SELECT, &[Value::Int(owner.rid)], |row| {
        let stored = ImageContent::read(row)?;
        kind = TYPES.iter().find(|kind| **kind == stored.kind);
        out.extend_from_slice(stored.bytes);
        Ok(())
    })?;
    let kind = kind.ok_or_else(|| Problem::not_found("UserImage"))?;
    let mut answer = Answer::resource(call.request.op.status);
    answer.content_type = Some(kind);
    answer.headers = vec![
        ("x-content-type-options", "nosniff".into()),
        ("content-security-policy", "default-src 'none'; sandbox".into()),
        ("cache-control", "private, no-cache".into()),
    ];
    Ok(answer)
}

fn set(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner(call, tx)?;
    let Some(normalized) = call.result::<Result<Picture, PictureRefusal>>() else {
        let (kind, bytes) = call.request.bytes.clone().unwrap_or_default();
        return Ok(Answer::after(Work::new(Purpose::Image, move || {
            parse(Some(kind.as_str()).filter(|kind| !kind.is_empty()), &bytes)
                .and_then(|upload| normalize(&upload))
        })));
    };
    let picture = normalized.as_ref().as_ref().map_err(refuse)?;
    let was = match find(call, tx, &owner) {
        Err(problem) if problem.status() == 404 => None,
        loaded => Some(loaded?),
    };
    let size = i64::try_from(picture.bytes.len()).unwrap_or(i64::MAX);
    let mut values = UserImage::no_values();
    UserImage::CONTENT_TYPE.field().set(&mut values, picture.content_type.into());
    UserImage::SIZE_BYTES.field().set(&mut values, Value::Int(size));
    UserImage::SHA256.field().set(&mut values, Value::Bytes(picture.sha256.to_vec()));
    let stored = if let Some(was) = was {
        check_if_match(call, tx, &USER_IMAGE, &was)?;
        let mut image = UserImage::from_values(was.values.clone())?;
        image.concurrency_token = chancery_record::FieldType::from_value(call.context.new_token())?;
        let current = image.into_values();
        let values: Vec<Value> =
            values.into_iter().zip(current).map(|(new, old)| if new.is_null() { old } else { new }).collect();
        update_unversioned(&call.context, tx, &USER_IMAGE, &was, &values, AuditAction::UPDATED)?;
        was.with(values)
    } else {
        let values = new_row(&call.context, &USER_IMAGE, Some(&owner), values)?;
        insert(&call.context, tx, &USER_IMAGE, Some(&owner), &values)?;
        StoredRow { rid: 0, last_entry: 0, values, owner: Some(owner.clone()) }
    };
    tx.queue(
        &StateTable::UserImageContent.insert(
            "(user_rid, content) VALUES (?1, ?2) \
         ON CONFLICT (user_rid) DO UPDATE SET content = excluded.content",
        ),
        vec![Value::Int(owner.rid), Value::Bytes(picture.bytes.clone())],
    )?;
    write_stored(call, tx, &USER_IMAGE, &stored)?;
    Ok(Answer::resource(call.request.op.status))
}

fn refuse(refused: &PictureRefusal) -> Problem {
    let kind = match refused {
        PictureRefusal::Members(errors) => return Problem::wrong(errors.clone()),
        PictureRefusal::UnsupportedType => ProblemKind::UnsupportedMediaType,
        PictureRefusal::TooLarge(_) => ProblemKind::PayloadTooLarge,
        PictureRefusal::Malformed(_) | PictureRefusal::TypeMismatch(_) | PictureRefusal::TooManyPixels(_) => {
            ProblemKind::InvalidRequest
        }
    };
    let detail = refused.to_string();
    Problem { errors: vec![FieldError::new("", detail.clone())].into(), ..Problem::new(kind, detail) }
}

fn remove(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let owner = owner(call, tx)?;
    let was = find(call, tx, &owner)?;
    check_if_match(call, tx, &USER_IMAGE, &was)?;
    delete(&call.context, tx, &USER_IMAGE, &was)?;
    tx.queue(&StateTable::UserImageContent.delete("WHERE user_rid = ?1"), vec![Value::Int(owner.rid)])?;
    Ok(Answer::new(call.request.op.status))
}
