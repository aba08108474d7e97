//! Statistics for measurements: numbers in, numbers out.
