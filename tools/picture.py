"""PNG files by a browser: small ones of few colours, and whether two show the same. The browser reads them; Python needs no library."""
import base64
import struct
import zlib

COLOURS = 160  # of a palette; drawings have few, and the edges of letters are greys
APART = 8  # of 255: least distance of two colours of a palette, so that greys do not fill it
BLOCK, MOST_OFF, FARTHEST_OFF = 16, 10, 120  # pixels; of 255: mean over blocks, one block

# A PNG as {width, height, data}: four bytes a pixel.
READ = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, image.width, image.height);
}"""

# Colours that most pixels have and that can be told apart, and the nearest of them for every pixel, as a string of bytes.
REDUCE = """async (text, most) => {
  const {width, height, data} = await (%s)(text);
  const counts = new Map();
  const rough = (i) => (data[i] & 0xf8) << 16 | (data[i + 1] & 0xf8) << 8 | data[i + 2] & 0xf8;
  for (let i = 0; i < data.length; i += 4) counts.set(rough(i), (counts.get(rough(i)) || 0) + 1);
  const palette = [];
  for (const [colour] of [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0])) {
    const one = [colour >> 16, colour >> 8 & 255, colour & 255];
    const apart = palette.every((other) => one.reduce((sum, value, k) => sum + (value - other[k]) ** 2, 0) >= APART ** 2);
    if (apart && palette.length < most) palette.push(one);
  }
  const known = new Map();
  const nearest = (colour) => {
    const far = (one) => (one[0] - (colour >> 16)) ** 2 + (one[1] - (colour >> 8 & 255)) ** 2 + (one[2] - (colour & 255)) ** 2;
    let best = 0;
    for (let k = 1; k < palette.length; ++k) if (far(palette[k]) < far(palette[best])) best = k;
    return best;
  };
  let pixels = "";
  for (let i = 0; i < data.length; i += 4) {
    const colour = rough(i);
    if (!known.has(colour)) known.set(colour, nearest(colour));
    pixels += String.fromCharCode(known.get(colour));
  }
  return {width, height, palette, pixels: btoa(pixels)};
}""".replace("APART", str(APART)) % READ

# Mean brightness of blocks of pixels: what remains of a picture whatever fonts a machine has.
BLOCKS = """async (text, block) => {
  const {width, height, data} = await (%s)(text);
  const wide = Math.ceil(width / block), sums = new Float64Array(wide * Math.ceil(height / block)), counts = new Float64Array(sums.length);
  for (let i = 0; i < data.length; i += 4) {
    const at = Math.floor(Math.floor(i / 4 / width) / block) * wide + Math.floor(i / 4 %% width / block);
    sums[at] += (data[i] + data[i + 1] + data[i + 2]) / 3;
    ++counts[at];
  }
  return {size: [width, height], means: [...sums.map((sum, i) => sum / counts[i])]};
}""" % READ


def asked(page, script, picture, number):
    return page.evaluate(f'({script})("{base64.b64encode(picture).decode()}", {number})')


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def of_few_colours(page, picture):
    """The PNG `picture` again, as a PNG of a palette (RFC 2083)."""
    found = asked(page, REDUCE, picture, COLOURS)
    width, height, pixels = found["width"], found["height"], base64.b64decode(found["pixels"])
    rows = b"".join(b"\0" + pixels[y * width:(y + 1) * width] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", bytes(value & 255 for colour in found["palette"] for value in colour)) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def difference(page, a, b):
    """Why two pictures are not of one page; nothing where they are."""
    first, second = asked(page, BLOCKS, a, BLOCK), asked(page, BLOCKS, b, BLOCK)
    if first["size"] != second["size"]:
        return "another size"
    off = [abs(x - y) for x, y in zip(first["means"], second["means"])]
    if sum(off) / len(off) > MOST_OFF:
        return f"{sum(off) / len(off):.1f} of 255 off in the mean"
    return f"a block is {max(off):.0f} of 255 off" if max(off) > FARTHEST_OFF else ""
