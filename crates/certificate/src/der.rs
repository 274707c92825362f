//! A reader of DER, one element after another.
//!
//! It does not recurse: the caller enters each level, so that the input does not control the depth.

pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// `[0]` around a whole element.
pub const EXPLICIT_0: u8 = 0xa0;
/// `[0]` instead of a primitive element's own tag.
pub const IMPLICIT_0: u8 = 0x80;

/// One element of DER.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    pub tag: u8,
    pub content: &'a [u8],
}

/// The elements that are not read yet.
#[derive(Clone, Copy)]
pub struct DerReader<'a>(&'a [u8]);

impl<'a> DerReader<'a> {
    pub const fn over(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The elements inside the one element that the bytes are, which must have this tag.
    pub fn only(bytes: &'a [u8], tag: u8) -> Option<Self> {
        let mut reader = Self(bytes);
        let inside = reader.enter(tag)?;
        reader.is_done().then_some(inside)
    }

    pub const fn is_done(self) -> bool {
        self.0.is_empty()
    }

    /// The tag of the next element.
    pub fn peek(self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Takes the next element. Lengths are definite, as DER has them, and tags are one byte, as these formats
    /// have them.
    pub fn element(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x84 => {
                let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
                rest = after;
                digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit))
            }
            _ => return None,
        };
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (content, after) = rest.split_at_checked(length)?;
        self.0 = after;
        Some(Element { tag, content })
    }

    /// Takes the next element, if it has this tag; returns its content.
    pub fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut peek = *self;
        let element = peek.element()?;
        (element.tag == tag).then(|| {
            *self = peek;
            element.content
        })
    }

    /// Takes the next element, if it has this tag; returns the elements inside.
    pub fn enter(&mut self, tag: u8) -> Option<Self> {
        self.take(tag).map(Self)
    }

    /// Takes the next element, if it is an integer from 0 to `u32::MAX`.
    pub fn number(&mut self) -> Option<u32> {
        let digits = magnitude(self.take(INTEGER)?)?;
        (digits.len() <= 4).then(|| digits.iter().fold(0, |number, digit| number << 8 | u32::from(*digit)))
    }
}

/// The bytes of an integer without leading zeros. `None`: it is negative.
pub fn magnitude(integer: &[u8]) -> Option<&[u8]> {
    if integer.first()? & 0x80 != 0 {
        return None;
    }
    Some(without_zeros(integer))
}

/// Bytes without leading zeros.
pub fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{DerReader, INTEGER, OCTET_STRING, SEQUENCE};

    #[test]
    fn elements_are_read_in_order_and_only_with_their_tag() {
        let mut reader = DerReader::over(&[INTEGER, 2, 1, 0, OCTET_STRING, 0x81, 1, 9]);
        assert_eq!(reader.take(SEQUENCE), None);
        assert_eq!(reader.number(), Some(256));
        assert_eq!(reader.take(OCTET_STRING), Some(&[9][..]));
        assert!(reader.is_done());
    }

    #[test]
    fn invalid_der_has_no_element() {
        for bytes in [
            &[][..],
            &[4],
            &[4, 2, 0],
            &[4, 0x80, 0, 0],
            &[4, 0x85, 0, 0, 0, 0, 0],
            &[4, 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x1f, 1, 0],
        ] {
            assert!(DerReader::over(bytes).element().is_none(), "{bytes:?}");
        }
        assert_eq!(DerReader::over(&[INTEGER, 1, 0x80]).number(), None);
        assert_eq!(DerReader::over(&[INTEGER, 5, 1, 0, 0, 0, 0]).number(), None);
    }
}
