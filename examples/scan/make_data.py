"""Writes data/delivery-note.pdf: a page that a scanner might have made. It is one picture, and there is no text in it to be taken out.

Run it in this folder: python3 make_data.py
"""

from pathlib import Path

FILE = Path(__file__).parent / "data" / "delivery-note.pdf"
LINES = ["DELIVERY NOTE 4711", "12 PUMP SEALS", "3 VALVES"]
# Letters of 5 x 7 dots, row by row.
FONT = {
    " ": "00 00 00 00 00 00 00", "1": "04 0c 04 04 04 04 0e", "2": "0e 11 01 02 04 08 1f", "3": "1f 02 04 02 01 11 0e",
    "4": "02 06 0a 12 1f 02 02", "7": "1f 01 02 04 08 08 08", "A": "0e 11 11 11 1f 11 11", "D": "1c 12 11 11 11 12 1c",
    "E": "1f 10 10 1e 10 10 1f", "I": "0e 04 04 04 04 04 0e", "L": "10 10 10 10 10 10 1f", "M": "11 1b 15 15 11 11 11",
    "N": "11 11 19 15 13 11 11", "O": "0e 11 11 11 11 11 0e", "P": "1e 11 11 1e 10 10 10", "R": "1e 11 11 1e 14 12 11",
    "S": "0f 10 10 0e 01 01 1e", "T": "1f 04 04 04 04 04 04", "U": "11 11 11 11 11 11 0e", "V": "11 11 11 11 11 0a 04",
    "Y": "11 11 11 0a 04 04 04",
}  # fmt: skip
WIDTH, HEIGHT = 128, 48


def picture():
    """Rows of pixels, one bit each, in hexadecimal; 1 is white."""
    rows = [[1] * WIDTH for _ in range(HEIGHT)]
    for number, line in enumerate(LINES):
        for place, letter in enumerate(line):
            for y, dots in enumerate(FONT[letter].split()):
                for x in range(5):
                    if int(dots, 16) >> (4 - x) & 1:
                        rows[6 + 13 * number + y][8 + 6 * place + x] = 0
    # A stain, as scanners have them.
    for y in range(30, 44):
        for x in range(100, 114):
            if (x - 107) ** 2 + (y - 37) ** 2 < 40 and (x * 7 + y * 3) % 4:
                rows[y][x] = 0
    return "\n".join(f"{int(''.join(map(str, row)), 2):0{WIDTH // 4}X}" for row in rows) + ">"


def stream(head, text):
    return f"<< {head} /Length {len(text)} >>\nstream\n{text}\nendstream"


def main():
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 512 192] /Resources << /XObject << /Scan 4 0 R >> >> /Contents 5 0 R >>",
        stream(
            f"/Type /XObject /Subtype /Image /Width {WIDTH} /Height {HEIGHT} /ColorSpace /DeviceGray /BitsPerComponent 1"
            " /Filter /ASCIIHexDecode",
            picture(),
        ),
        stream("", "512 0 0 192 0 0 cm /Scan Do"),
    ]
    text, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    text += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    text += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{text.index('xref')}\n%%EOF\n"
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(text.encode("ascii"))


if __name__ == "__main__":
    main()
