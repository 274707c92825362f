//! Errors of image uploads.

use std::fmt;

use chancery_record::FieldError;

use crate::Format;

/// Why an upload is rejected. The text, if any, is a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PictureRefusal {
    /// The content type, or the content where no type is declared, is not one of the accepted formats.
    UnsupportedType,
    /// More bytes than allowed, as sent or as stored.
    TooLarge(String),
    /// The image or the body is incomplete or not valid, or the body has no image.
    Malformed(String),
    /// Members of a JSON body are missing, unknown or invalid, each with its JSON Pointer.
    Members(Vec<FieldError>),
    /// The content does not match its content type.
    TypeMismatch(String),
    /// More pixels or frames than allowed.
    TooManyPixels(String),
}

impl fmt::Display for PictureRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedType => {
                let [png, jpeg, webp, gif] = Format::ALL.map(Format::content_type);
                write!(
                    formatter,
                    "An image is {png}, {jpeg}, {webp} or {gif}, sent as such, as application/octet-stream, \
                     as one part of multipart/form-data, or within application/json."
                )
            }
            Self::Members(errors) => {
                let details = errors.iter().map(|error| format!("{} {}", error.pointer, error.detail));
                formatter.write_str(&details.collect::<Vec<_>>().join("; "))
            }
            Self::TooLarge(detail)
            | Self::Malformed(detail)
            | Self::TypeMismatch(detail)
            | Self::TooManyPixels(detail) => formatter.write_str(detail),
        }
    }
}

impl std::error::Error for PictureRefusal {}
