//! Cursors: the position at which a list continues, encrypted so that a client can neither forge nor read it.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Json, Value, read_json};

use super::random::random;

/// The key that encrypts cursors.
pub struct CursorKey(LessSafeKey);

impl CursorKey {
    /// From 32 bytes; `None` for any other length.
    pub fn new(key: &[u8]) -> Option<Self> {
        Some(Self(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?)))
    }

    /// Encrypts values for one list, which `context` identifies as associated data.
    pub fn seal(&self, context: &[u8], values: &[Value]) -> String {
        let texts: Vec<String> = values.iter().map(encode).collect();
        let mut bytes = serde_json::to_vec(&texts).unwrap_or_default();
        let nonce = random::<NONCE_LEN>();
        let sealed = self.0.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context),
            &mut bytes,
        );
        if sealed.is_err() {
            bytes.clear();
        }
        let mut cursor = nonce.to_vec();
        cursor.append(&mut bytes);
        BASE64_URL_SAFE_NO_PAD.encode(cursor)
    }

    /// Decrypts a cursor of the same list; `None` for any other text.
    pub fn open(&self, context: &[u8], cursor: &str) -> Option<Vec<Value>> {
        let mut bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let sealed = bytes.split_off_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(&bytes).ok()?;
        let mut sealed = sealed;
        let opened = self.0.open_in_place(nonce, Aad::from(context), &mut sealed).ok()?;
        let Json::Array(texts) = read_json(opened).ok()? else { return None };
        texts.iter().map(|text| if let Json::Text(text) = text { decode(text) } else { None }).collect()
    }
}

/// `Vec::split_off` that refuses instead of panicking.
trait SplitOff: Sized {
    fn split_off_checked(&mut self, at: usize) -> Option<Self>;
}

impl SplitOff for Vec<u8> {
    fn split_off_checked(&mut self, at: usize) -> Option<Self> {
        (self.len() >= at).then(|| self.split_off(at))
    }
}

fn encode(value: &Value) -> String {
    match value {
        Value::Bool(value) => format!("b{}", u8::from(*value)),
        Value::Int(value) => format!("i{value}"),
        Value::Text(text) => format!("t{text}"),
        Value::Id(id) => format!("u{id}"),
        Value::Null | Value::Bytes(_) => "n".into(),
    }
}

fn decode(text: &str) -> Option<Value> {
    let rest = text.get(1..)?;
    Some(match text.as_bytes().first()? {
        b'b' => Value::Bool(rest == "1"),
        b'i' => Value::Int(rest.parse().ok()?),
        b't' => Value::Text(rest.to_owned()),
        b'u' => Value::Id(rest.parse().ok()?),
        _ => Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use chancery_record::Value;

    use super::CursorKey;

    #[test]
    fn a_cursor_opens_only_for_its_own_list_and_key() {
        let key = CursorKey::new(&[7; 32]).unwrap();
        let values = vec![Value::from("ü|[\""), Value::Int(-3), Value::Null, Value::Bool(true)];
        let cursor = key.seal(b"users", &values);
        assert_eq!(key.open(b"users", &cursor), Some(values));
        assert_eq!(key.open(b"groups", &cursor), None);
        assert_eq!(CursorKey::new(&[8; 32]).unwrap().open(b"users", &cursor), None);
        for broken in ["", "x", "AAAA", &cursor[1..], &format!("{cursor}A"), "***"] {
            assert_eq!(key.open(b"users", broken), None, "{broken}");
        }
    }
}
