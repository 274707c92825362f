//! Handles of options: the name and the type of an option's value, known to the compiler.

use std::marker::PhantomData;

use super::{Entry, Form, form};

/// An option of the owners of family `F`, with a value of type `T`. [`Options::get`](super::Options::get) reads
/// it.
#[derive(Debug)]
pub struct Setting<F, T> {
    pub(super) entry: Entry,
    of: PhantomData<(F, T)>,
}

impl<F, T> Clone for Setting<F, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, T> Copy for Setting<F, T> {}

impl<F, T> Setting<F, T> {
    pub(super) const fn new(entry: Entry) -> Self {
        Self { entry, of: PhantomData }
    }

    /// Its name in the interface.
    pub const fn name(&self) -> &'static str {
        self.entry.name
    }
}

/// The type of an option's value.
pub trait ValueType {
    /// The value that code reads.
    type Value<'text>;

    /// Reads a text of the option's form.
    fn read(text: &str) -> Self::Value<'_>;
}

/// A Boolean.
#[derive(Clone, Copy, Debug)]
pub enum Flag {}

/// A whole number.
#[derive(Clone, Copy, Debug)]
pub enum Count {}

/// A duration, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub enum Span {}

/// A text.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

/// The items of a list with commas, without blanks around them.
#[derive(Clone, Copy, Debug)]
pub enum List {}

impl ValueType for Flag {
    type Value<'text> = bool;

    fn read(text: &str) -> bool {
        form::flag(text).unwrap_or(false)
    }
}

impl ValueType for Count {
    type Value<'text> = i64;

    fn read(text: &str) -> i64 {
        form::number(text).unwrap_or(0)
    }
}

impl ValueType for Span {
    type Value<'text> = i64;

    fn read(text: &str) -> i64 {
        form::span(text).unwrap_or(0)
    }
}

impl ValueType for Text {
    type Value<'text> = &'text str;

    fn read(text: &str) -> &str {
        text
    }
}

impl ValueType for List {
    type Value<'text> = Vec<&'text str>;

    fn read(text: &str) -> Vec<&str> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    }
}

impl Flag {
    pub(super) const fn form() -> Form {
        Form::Flag
    }
}

impl Count {
    pub(super) const fn form(least: i64, most: i64) -> Form {
        Form::Number(least, most)
    }
}

impl Span {
    pub(super) const fn form(least: i64, most: i64) -> Form {
        Form::Span(least, most)
    }
}

impl Text {
    pub(super) const fn form(form: Form) -> Form {
        form
    }
}

impl List {
    pub(super) const fn form(form: Form) -> Form {
        form
    }
}

/// Declares a family of options: a constant for each, and the list of all.
macro_rules! options {
    (
        $(#[$about:meta])*
        $family:ident
        $(for $owners:tt {
            $($(#[de($german:literal)])? $option:ident: $kind:ident $(($($bound:expr),+))? = $name:literal or $default:literal $(, $mark:ident)*;)+
        })+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $family {}

        impl $family {
            $($(
                #[doc = concat!("`", $name, "`.")]
                pub const $option: $crate::settings::Setting<Self, $kind> = $crate::settings::Setting::new(
                    $crate::settings::Entry::new(
                        $crate::settings::setting::options!(first $owners),
                        $name,
                        $default,
                        $kind::form($($($bound),+)?),
                    )
                    $(.$mark())*
                    $(.german($german))?,
                );
            )+)+
        }

        impl $family {
            /// The options, each with the owners that have it.
            pub(super) const OPTIONS: &'static [(&'static [$crate::settings::Owner], $crate::settings::Entry)] = &[
                $($(($crate::settings::setting::options!(owners $owners), Self::$option.entry),)+)+
            ];
        }
    };
    (first [$owner:ident $(, $more:ident)*]) => {
        $crate::settings::Owner::$owner
    };
    (owners [$($owner:ident),+]) => {
        &[$($crate::settings::Owner::$owner),+]
    };
}

pub(super) use options;
