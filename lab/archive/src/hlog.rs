//! `steps.hlog`: HdrHistogram interval logs, readable by the standard tools. It knows no trials.
//!
//! A line is `Tag=NN/ok/response,START,LENGTH,MAX,BASE64`: seconds on the trial's clock with three
//! decimals, the largest value in µs, and the histogram in the V2 deflate form.
//!
//! The reader keeps intervals in their uncompressed V2 form, some hundred bytes each, and reads counts
//! on demand: all histograms of an hour at once would be gigabytes. Each is read once
//! when the file is, so that a damaged one is found then.

use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use hdrhistogram::serialization::Serializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError,
    LogEntry, Tag,
};
use hdrhistogram::{Counter, Histogram};
use lab_stats::Sparse;
use lab_stats::encoding::{decode_v2, encode_v2};

use crate::{ArchiveError, Series};

/// First lines of the file; the legend has the wording of the Java tools.
pub(crate) const HEADER: &str = "\
#[plimsoll steps: values in microseconds, times in seconds from the start of the ramp]
#[Histogram log format version 1.3]
#[StartTime: 0.000 (seconds since epoch)]
\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"
";

/// A V2 histogram of five digits over all of u64 has at most 47 × 2^17 counts of 9 bytes.
const MAX_INFLATED_BYTES: u64 = 64 << 20;

/// Longer than the line of any histogram that is taken.
const MAX_LINE_BYTES: u64 = 2 * MAX_INFLATED_BYTES;

/// The largest value of a histogram that is kept with all its counts.
const LONGEST_US: u64 = 1 << 42;

/// Cookie base 0x1c849304 with the "one byte words" nibble, as HdrHistogram's V2 defines it.
const DEFLATED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

/// One histogram of one series over one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// The series of the histogram.
    pub series: Series,
    /// Start, in whole ms on the trial's clock.
    pub start_ms: u64,
    /// End, in whole ms on the trial's clock.
    pub end_ms: u64,
    /// V2 form, checked.
    encoded: Box<[u8]>,
}

impl Interval {
    /// The histogram, in µs.
    #[must_use]
    pub fn histogram(&self) -> Histogram<u64> {
        decode_v2(&self.encoded).expect("it was read once when the file was read")
    }

    /// Returns the histogram's counts, in µs, without zero counts; sufficient for most callers.
    #[must_use]
    pub fn counts(&self) -> Sparse {
        let mut counts = Sparse::default();
        self.read_counts(&mut counts);
        counts
    }

    /// Reads the counts into an existing buffer, for callers that read many histograms.
    pub fn read_counts(&self, into: &mut Sparse) {
        let read = into.read(&self.encoded);
        read.expect("it was read once when the file was read");
    }

    /// Adds the histogram's counts to another. Values beyond the other's range widen it if it may
    /// resize itself, else they count as its largest value.
    pub fn add_to(&self, sum: &mut Histogram<u64>) {
        let counts = self.counts();
        if counts.add_to(sum).is_err() {
            for one in counts.iter() {
                sum.saturating_record_n(one.largest(), one.count);
            }
        }
    }
}

/// Encodes histograms as lines; keeps its buffers.
#[derive(Default)]
pub(crate) struct Encoder {
    serializer: Deflated,
    line: Vec<u8>,
}

/// The V2 deflate form of bytes that depend on the values alone: the archive is the same however many
/// workers and generators recorded them.
struct Deflated {
    plain: Vec<u8>,
    /// It has tables of some hundred kB, more than a histogram costs otherwise.
    compress: Compress,
    stream: Vec<u8>,
}

impl Default for Deflated {
    fn default() -> Self {
        Self {
            plain: Vec::new(),
            compress: Compress::new(Compression::default(), true),
            stream: Vec::new(),
        }
    }
}

impl Deflated {
    /// Compresses the plain bytes as a zlib stream of their own.
    fn deflate(&mut self) -> Result<(), String> {
        self.compress.reset();
        self.stream.clear();
        loop {
            // The next round continues with bytes that don't fit.
            self.stream.reserve(self.plain.len() / 2 + 256);
            let done = usize::try_from(self.compress.total_in()).map_err(|e| e.to_string())?;
            let rest = &self.plain[done..];
            let finish = FlushCompress::Finish;
            let status = self.compress.compress_vec(rest, &mut self.stream, finish);
            if status.map_err(|e| e.to_string())? == Status::StreamEnd {
                return Ok(());
            }
        }
    }
}

impl Serializer for Deflated {
    type SerializeError = String;

    fn serialize<T: Counter, W: Write>(
        &mut self,
        histogram: &Histogram<T>,
        writer: &mut W,
    ) -> Result<usize, String> {
        self.plain.clear();
        encode_v2(histogram, &mut self.plain).map_err(|e| e.to_string())?;
        self.deflate()?;
        let length = u32::try_from(self.stream.len()).map_err(|e| e.to_string())?;
        let head = [DEFLATED, length.to_be_bytes()].concat();
        for part in [&head, &self.stream] {
            writer.write_all(part).map_err(|e| e.to_string())?;
        }
        Ok(head.len() + self.stream.len())
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

impl Encoder {
    /// The line for one interval, with its end. Times round to whole ms.
    pub(crate) fn line(
        &mut self,
        series: Series,
        start: Duration,
        end: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<&[u8], String> {
        self.tagged(&series.to_string(), start, end, histogram)
    }

    /// The same, with any tag that has neither spaces nor commas.
    pub(crate) fn tagged(
        &mut self,
        tag: &str,
        start: Duration,
        end: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<&[u8], String> {
        let (start, end) = (whole_ms(start), whole_ms(end));
        self.line.clear();
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.line, &mut self.serializer)
            .map_err(|e| e.to_string())?
            .write_histogram(histogram, start, end.saturating_sub(start), Tag::new(tag))
            .map_err(|e| match e {
                IntervalLogWriterError::SerializeError(e) => e,
                IntervalLogWriterError::IoError(e) => e.to_string(),
            })?;
        Ok(&self.line)
    }
}

fn whole_ms(t: Duration) -> Duration {
    let ms = t.saturating_add(Duration::from_micros(500)).as_millis();
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}

/// Parses the whole file, line by line, and checks every histogram in it.
pub(crate) fn parse(path: &Path, mut from: impl BufRead) -> Result<Vec<Interval>, ArchiveError> {
    let (mut intervals, mut line) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::default();
    for number in 1.. {
        line.clear();
        let mut rest = from.by_ref().take(MAX_LINE_BYTES);
        let read = rest.read_until(b'\n', &mut line);
        if read.map_err(ArchiveError::read(path))? == 0 {
            break;
        }
        let parsed = decoder.line(&line);
        intervals.extend(parsed.map_err(|p| ArchiveError::damaged(path, Some(number), p))?);
    }
    Ok(intervals)
}

/// Reads lines; keeps its buffers.
pub(crate) struct Decoder {
    compressed: Vec<u8>,
    /// It has tables of some ten kB, which take longer to make than a histogram takes to inflate.
    inflate: Decompress,
    plain: Vec<u8>,
    counts: Sparse,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            compressed: Vec::new(),
            inflate: Decompress::new(true),
            plain: Vec::new(),
            counts: Sparse::default(),
        }
    }
}

impl Decoder {
    /// The interval of one line, with its end; `None` of a comment or the legend.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<Option<Interval>, String> {
        entry(line)?.map(|entry| self.interval(&entry)).transpose()
    }

    /// The tag and the histogram of one line, with its end; `None` of a comment or the legend.
    pub(crate) fn tagged(
        &mut self,
        line: &[u8],
    ) -> Result<Option<(String, Histogram<u64>)>, String> {
        let Some(entry) = entry(line)? else {
            return Ok(None);
        };
        let tag = entry
            .tag()
            .ok_or("the interval has no tag")?
            .as_str()
            .to_owned();
        self.counted(&entry)?;
        let largest = self.counts.iter().map(|one| one.largest()).max();
        if largest.is_some_and(|us| us > LONGEST_US) {
            return Err("the histogram has values of more than fifty days".to_owned());
        }
        // Its memory grows with the largest value, independent of the range in the file.
        let mut histogram = Histogram::new(3).map_err(|e| e.to_string())?;
        let added = self.counts.add_to(&mut histogram);
        added.map_err(|e| e.to_string())?;
        Ok(Some((tag, histogram)))
    }

    fn interval(&mut self, entry: &IntervalLogHistogram<'_>) -> Result<Interval, String> {
        let tag = entry.tag().ok_or("the interval has no tag")?;
        let series = tag.as_str().parse::<Series>().map_err(|e| e.to_string())?;
        let start = whole_ms(entry.start_timestamp());
        let end = start
            .checked_add(whole_ms(entry.duration()))
            .ok_or("the time is out of range")?;
        self.counted(entry)?;
        let ms = |t: Duration| u64::try_from(t.as_millis()).map_err(|_| "the time is out of range");
        Ok(Interval {
            series,
            start_ms: ms(start)?,
            end_ms: ms(end)?,
            encoded: self.plain.as_slice().into(),
        })
    }

    /// Decodes the histogram of an entry and reads its counts.
    fn counted(&mut self, entry: &IntervalLogHistogram<'_>) -> Result<(), String> {
        self.compressed.clear();
        BASE64
            .decode_vec(entry.encoded_histogram(), &mut self.compressed)
            .map_err(|e| format!("not base64: {e}"))?;
        self.inflate()?;
        self.counts.read(&self.plain).map_err(|e| e.to_string())
    }

    /// The V2 form inside a V2 deflate form: cookie, length, zlib stream (with its checksum).
    fn inflate(&mut self) -> Result<(), String> {
        let (head, mut stream) = self
            .compressed
            .split_at_checked(8)
            .ok_or("the histogram is cut off")?;
        if head[..4] != DEFLATED {
            return Err("it is not a V2 deflate histogram".to_owned());
        }
        if be_u32(&head[4..]) as usize != stream.len() {
            return Err("the histogram is cut off".to_owned());
        }
        self.inflate.reset(true);
        self.plain.clear();
        loop {
            self.plain.reserve(8 * stream.len() + 256);
            let (taken, made) = (self.inflate.total_in(), self.plain.len());
            let none = FlushDecompress::None;
            let status = self
                .inflate
                .decompress_vec(stream, &mut self.plain, none)
                .map_err(|e| format!("the histogram does not inflate: {e}"))?;
            if self.plain.len() as u64 > MAX_INFLATED_BYTES {
                return Err("the histogram inflates to more than 64 MiB".to_owned());
            }
            // Never more than there was.
            let used = usize::try_from(self.inflate.total_in() - taken).unwrap_or(stream.len());
            stream = &stream[used..];
            match status {
                Status::StreamEnd => return Ok(()),
                _ if used == 0 && self.plain.len() == made => {
                    return Err("the histogram does not inflate: its end is missing".to_owned());
                }
                Status::Ok | Status::BufError => {}
            }
        }
    }
}

/// The entry of a line, with its end; `None` of a comment or the legend.
fn entry(line: &[u8]) -> Result<Option<IntervalLogHistogram<'_>>, String> {
    if !line.ends_with(b"\n") {
        return Err("the line is cut off".to_owned());
    }
    match IntervalLogIterator::new(line).next() {
        None | Some(Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_))) => Ok(None),
        Some(Ok(LogEntry::Interval(entry))) => Ok(Some(entry)),
        Some(Err(_)) => Err("it is not an interval, a comment, or the legend".to_owned()),
    }
}

fn be_u32(bytes: &[u8]) -> u32 {
    bytes[..4].iter().fold(0, |n, b| n << 8 | u32::from(*b))
}

#[cfg(test)]
mod tests {
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn sample(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000, 3).unwrap();
        for value in values {
            histogram.saturating_record(*value);
        }
        histogram
    }

    fn line(values: &[u64]) -> Vec<u8> {
        let (start, end) = (Duration::from_millis(1500), Duration::from_millis(2500));
        Encoder::default()
            .line(Series::Lateness, start, end, &sample(values))
            .unwrap()
            .to_vec()
    }

    /// Compresses with a new compressor for each, as earlier versions always did.
    fn alone(plain: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    proptest! {
        #[test]
        fn what_was_compressed_before_makes_no_difference(
            all in proptest::collection::vec(
                (proptest::collection::vec(0u8..8, 0..3000), proptest::collection::vec(any::<u8>(), 0..3000)),
                1..4,
            ),
        ) {
            let mut deflated = Deflated::default();
            for (like, unlike) in all {
                deflated.plain = [like, unlike].concat();
                deflated.deflate().unwrap();
                prop_assert_eq!(&deflated.stream, &alone(&deflated.plain));
            }
        }

        #[test]
        fn intervals_read_back(
            values in proptest::collection::vec(0u64..70_000_000, 0..200),
            start in 0u64..10_000_000_000, length in 0u64..5_000_000,
        ) {
            let (start, end) = (Duration::from_micros(start), Duration::from_micros(start + length));
            let histogram = sample(&values);
            let mut encoder = Encoder::default();
            let line = encoder.line(Series::Lateness, start, end, &histogram).unwrap();
            let read = parse(Path::new("x"), line).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(Duration::from_millis(read[0].start_ms), whole_ms(start));
            prop_assert_eq!(Duration::from_millis(read[0].end_ms), whole_ms(end));
            prop_assert_eq!(read[0].histogram(), histogram);
        }

        #[test]
        fn a_damaged_line_is_an_error_or_another_line(
            values in proptest::collection::vec(0u64..70_000_000, 0..50),
            at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut line = line(&values);
            let at = at.index(line.len());
            line[at] = byte;
            let _ = parse(Path::new("x"), &line[..]);
        }
    }

    #[test]
    fn a_cut_off_line_is_an_error() {
        let whole = line(&[5, 500, 50_000]);
        for length in 1..whole.len() {
            assert!(parse(Path::new("x"), &whole[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn sums_keep_every_count() {
        let read = parse(Path::new("x"), &line(&[1, 1000, 59_000_000])[..]).unwrap();
        let mut narrow = Histogram::<u64>::new_with_bounds(1, 10_000, 3).unwrap();
        let mut wide = Histogram::<u64>::new(3).unwrap();
        for sum in [&mut narrow, &mut wide] {
            read[0].add_to(sum);
            read[0].add_to(sum);
            assert_eq!(sum.len(), 6);
        }
        assert!(wide.max() >= 59_000_000);
    }
}
