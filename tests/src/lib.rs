//! Helpers shared by the whole-product tests: start the product, wait on conditions, clean up.
