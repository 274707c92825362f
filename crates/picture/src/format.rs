//! The formats of images, by content type and by first bytes.

/// A format that an image may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PNG (ISO/IEC 15948). Of an animated one, the still image is stored.
    Png,
    /// JPEG (ITU-T T.81).
    Jpeg,
    /// WebP (RFC 9649). Of an animated one, the first frame is stored.
    Webp,
    /// GIF, animations included.
    Gif,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Webp, Self::Gif];

    /// The format's content type, without parameters.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }

    /// The format that a content type names, whatever its case and parameters.
    pub fn of_content_type(content_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| is_type(content_type, format.content_type()))
    }

    /// The format of an image with these first bytes.
    pub fn of_content(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            _ => None,
        }
    }
}

/// Whether a content type is `name`, whatever its case and parameters.
pub(crate) fn is_type(content_type: &str, name: &str) -> bool {
    let essence = content_type.split_once(';').map_or(content_type, |(essence, _)| essence);
    essence.trim().eq_ignore_ascii_case(name)
}
