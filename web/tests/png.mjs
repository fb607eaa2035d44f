// How is a screenshot made small? As a picture of at most 256 colours, which is all that flat surfaces and text need.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Nearly the same picture in fewer bytes. Takes what Chromium writes: eight bits a channel, not interlaced. */
export function shrink(png) {
  const { width, height, pixels, channels } = decode(png);
  return encode(width, height, index(pixels, channels));
}

function decode(png) {
  const parts = [];
  let header;
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + length);
    if (type === "IHDR") header = data;
    if (type === "IDAT") parts.push(data);
    at += length + 12;
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = { 2: 3, 6: 4 }[header[9]];
  if (header[8] !== 8 || channels === undefined || header[12] !== 0) throw new Error("another kind of PNG");
  const raw = inflateSync(Buffer.concat(parts));
  const line = width * channels;
  const pixels = Buffer.alloc(line * height);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const left = x >= channels ? pixels[y * line + x - channels] : 0;
      const up = y > 0 ? pixels[(y - 1) * line + x] : 0;
      const corner = x >= channels && y > 0 ? pixels[(y - 1) * line + x - channels] : 0;
      const guess = [0, left, up, (left + up) >> 1, nearest(left, up, corner)][filter];
      pixels[y * line + x] = raw[y * (line + 1) + 1 + x] + guess;
    }
  }
  return { width, height, pixels, channels };
}

function nearest(left, up, corner) {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

/** At most 256 colours, and for every pixel the number of the nearest of them. */
function index(pixels, channels) {
  const counts = new Map();
  const colourAt = (at) => (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
  for (let at = 0; at < pixels.length; at += channels) {
    const colour = colourAt(at);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const often = [...counts].sort(([, one], [, other]) => other - one).map(([colour]) => colour);
  const colours = often.slice(0, 160);
  // Then those that are least like any of them, so that a small green dot stays green.
  const far = new Map(often.slice(160).map((colour) => [colour, distanceTo(colours, colour).distance]));
  while (colours.length < 256 && far.size > 0) {
    const [next] = [...far].reduce((one, other) => (other[1] > one[1] ? other : one));
    colours.push(next);
    far.delete(next);
    for (const [colour, distance] of far)
      far.set(colour, Math.min(distance, distanceTo([next], colour).distance));
  }
  const numbers = new Map(colours.map((colour, number) => [colour, number]));
  for (const colour of far.keys()) numbers.set(colour, distanceTo(colours, colour).number);
  const indexed = Buffer.alloc(pixels.length / channels);
  for (let pixel = 0; pixel < indexed.length; pixel += 1)
    indexed[pixel] = numbers.get(colourAt(pixel * channels));
  return { numbers: indexed, palette: Buffer.from(colours.flatMap(partsOf)) };
}

const partsOf = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];

/** The nearest of some colours, and how far it is. */
function distanceTo(colours, wanted) {
  const [red, green, blue] = partsOf(wanted);
  let best = { number: 0, distance: Number.POSITIVE_INFINITY };
  colours.forEach((colour, number) => {
    const [r, g, b] = partsOf(colour);
    const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (distance < best.distance) best = { number, distance };
  });
  return best;
}

function encode(width, height, { numbers, palette }) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) numbers.copy(lines, y * (width + 1) + 1, y * width, (y + 1) * width);
  const data = deflateSync(lines, { level: 9 });
  return Buffer.concat([
    SIGNATURE,
    ...[
      ["IHDR", header],
      ["PLTE", palette],
      ["IDAT", data],
      ["IEND", Buffer.alloc(0)],
    ].map(chunk),
  ]);
}

function chunk([type, data]) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const ends = Buffer.alloc(4);
  ends.writeUInt32BE(crc32(body));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  return Buffer.concat([length, body, ends]);
}
