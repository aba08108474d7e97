//! Bounds on forms.

/// Largest form without files.
pub(crate) const FORM_BYTES: usize = 512 << 10;
