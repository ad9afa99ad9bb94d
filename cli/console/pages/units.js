// Numbers, sizes and times as people write them.

export const number = (value) => value === null || value === undefined ? "–"
  : Number(value).toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 1 : 0 });

export function size(bytes) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (bytes < 1024) return `${number(bytes)} ${unit}`;
    bytes /= 1024;
  }
  return `${number(bytes)} TiB`;
}

export function duration(nanoseconds) {
  for (const [limit, unit, text] of
       [[1e3, 1, "ns"], [1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [120e9, 1e9, "s"],
        [7200e9, 60e9, "min"], [172800e9, 3600e9, "h"]]) {
    if (nanoseconds < limit) return `${number(nanoseconds / unit)} ${text}`;
  }
  return `${number(nanoseconds / 86400e9)} d`;
}

export const instant = (nanoseconds) => nanoseconds
  ? new Date(nanoseconds / 1e6).toISOString().replace("T", " ").replace("Z", "") : "–";
