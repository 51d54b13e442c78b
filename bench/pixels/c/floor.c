/* floor: the same crops with libjpeg-turbo: what a program in C reaches that uses all that the library offers.
 *
 *     cc -O3 -march=native floor.c -ljpeg -lm -o floor
 *     floor FOLDER CROPS PICTURES
 *
 * Only the region that a crop needs is decoded (jpeg_crop_scanline, jpeg_skip_scanlines), with the library's exact DCT and its smooth
 * upsampling, so that the pixels are Pillow's. The resize is Pillow's too, weights of 22 bits, in AVX2; each weight is cut in two
 * halves of 11 bits, so that VPMADDWD multiplies exactly. Files and pictures are in memory. It answers the orders of main.go. */
#include <immintrin.h>
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

#if !defined(__AVX2__) || !defined(LIBJPEG_TURBO_VERSION)
#error needs AVX2 and the headers of libjpeg-turbo
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum { SIZE = 224, ROW = 3 * SIZE, PICTURE = SIZE * ROW, BATCH = 128, PAD = 256, BITS = 22, HALF = 11 };

typedef struct {
    uint8_t *bytes;
    size_t length;
} file;

typedef struct {
    int top, left, height, width, flip;
} crop;

static void *room(size_t n) {
    void *p;
    if (posix_memalign(&p, 64, n + PAD)) abort();
    memset(p, 0, n + PAD);
    return p;
}

/* grown is room for n bytes; what it held is lost. */
static uint8_t *grown(uint8_t **p, size_t *have, size_t n) {
    if (n > *have) {
        free(*p);
        *have = n + n / 4;
        *p = room(*have);
    }
    return *p;
}

/* -- resize ------------------------------------------------------------------------------------------------------- */

/* Output i of an axis is the sum over j < count[i] of source[first[i] + j] * weight j, of row i of pairs: for two taps their upper halves,
 * then their lower ones, each in 16 bits. */
typedef struct {
    int first[SIZE], count[SIZE], stride;
    int32_t *pairs;
    size_t have;
} axis;

static void put_pairs(int32_t *to, const double *w, double sum, int n) {
    for (int j = 0; j < n; j += 2) {
        int a = (int)(0.5 + w[j] / sum * (1 << BITS)), b = j + 1 < n ? (int)(0.5 + w[j + 1] / sum * (1 << BITS)) : 0;
        to[j] = a >> HALF | b >> HALF << 16;
        to[j + 1] = (a & ((1 << HALF) - 1)) | (b & ((1 << HALF) - 1)) << 16;
    }
}

/* set_axis is precompute_coeffs of Pillow's Resample.c for a triangle, of a side of n pixels that becomes SIZE. */
static void set_axis(axis *a, int n) {
    double scale = (double)n / SIZE, reach = scale < 1 ? 1 : scale;
    int most = 2 * (int)ceil(reach) + 2;
    double w[most];
    a->stride = most;
    a->pairs = (int32_t *)grown((uint8_t **)&a->pairs, &a->have, sizeof(int32_t) * SIZE * most);
    for (int i = 0; i < SIZE; i++) {
        double center = (i + 0.5) * scale, sum = 0;
        int first = (int)(center - reach + 0.5), end = (int)(center + reach + 0.5);
        first = first < 0 ? 0 : first;
        end = end > n ? n : end;
        for (int x = first; x < end; x++) {
            double d = fabs((x - center + 0.5) * (1 / reach));
            sum += w[x - first] = d < 1 ? 1 - d : 0;
        }
        a->first[i] = first;
        a->count[i] = end - first;
        put_pairs(a->pairs + (size_t)i * most, w, sum, end - first);
    }
}

static inline __m256i add_products(__m256i sum, __m256i samples, __m256i weights) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpwssd_epi32(sum, samples, weights);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(samples, weights));
#endif
}

static inline __m256i finish(__m256i upper, __m256i lower) {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_slli_epi32(upper, HALF), lower), BITS);
}

static inline __m256i both(const void *low, const void *high) {
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128(low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128(high), 1);
}

/* across_pixel makes a pixel of two rows, one in each 128-bit lane: a sample in each of three dwords. It reads 16 bytes from every second
 * pair of taps on. */
static inline __m256i across_pixel(const uint8_t *p, const uint8_t *q, const int32_t *w, int count) {
    const __m256i taps01 = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const __m256i taps23 = _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
    __m256i upper = _mm256_setzero_si256(), lower = _mm256_set1_epi32(1 << (BITS - 1));
    for (int j = 0; j < count; j += 4, p += 12, q += 12) {
        __m256i v = both(p, q), s = _mm256_shuffle_epi8(v, taps01);
        upper = add_products(upper, s, _mm256_set1_epi32(w[j]));
        lower = add_products(lower, s, _mm256_set1_epi32(w[j + 1]));
        if (j + 2 >= count) break;
        s = _mm256_shuffle_epi8(v, taps23);
        upper = add_products(upper, s, _mm256_set1_epi32(w[j + 2]));
        lower = add_products(lower, s, _mm256_set1_epi32(w[j + 3]));
    }
    return finish(upper, lower);
}

/* put stores the twelve bytes of four pixels, and four more where others come behind them. */
static inline void put(uint8_t *to, __m128i pixels, int last) {
    if (last)
        memcpy(to, &pixels, 12);
    else
        _mm_storeu_si128((void *)to, pixels);
}

/* across makes rows of SIZE pixels, four pixels of two rows at a time; an odd last row is made twice. */
static void across(const axis *a, const uint8_t *src, size_t stride, int rows, int flip, uint8_t *dst) {
    const __m256i pack = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    for (int y = 0; y < rows; y += 2) {
        const uint8_t *p = src + y * stride, *q = y + 1 < rows ? p + stride : p;
        uint8_t *low = dst + (size_t)y * ROW, *high = y + 1 < rows ? low + ROW : low;
        for (int x = 0; x < SIZE; x += 4) {
            __m256i t[4];
            for (int k = 0; k < 4; k++) {
                int i = flip ? SIZE - 1 - x - k : x + k, at = 3 * a->first[i];
                t[k] = across_pixel(p + at, q + at, a->pairs + (size_t)i * a->stride, a->count[i]);
            }
            __m256i v = _mm256_packus_epi16(_mm256_packs_epi32(t[0], t[1]), _mm256_packs_epi32(t[2], t[3]));
            v = _mm256_shuffle_epi8(v, pack);
            put(low + 3 * x, _mm256_castsi256_si128(v), x == SIZE - 4);
            put(high + 3 * x, _mm256_extracti128_si256(v, 1), x == SIZE - 4);
        }
    }
}

/* down_block makes 32 samples of a row. */
static inline void down_block(const uint8_t *p, size_t stride, const int32_t *w, int count, uint8_t *dst) {
    const __m256i zero = _mm256_setzero_si256();
    __m256i upper[4], lower[4];
    for (int k = 0; k < 4; k++) upper[k] = zero, lower[k] = _mm256_set1_epi32(1 << (BITS - 1));
    for (int j = 0; j < count; j += 2, p += 2 * stride) {
        __m256i u = _mm256_loadu_si256((const void *)p);
        __m256i v = j + 1 < count ? _mm256_loadu_si256((const void *)(p + stride)) : zero;
        __m256i l = _mm256_unpacklo_epi8(u, v), h = _mm256_unpackhi_epi8(u, v);
        __m256i s[4] = {_mm256_unpacklo_epi8(l, zero), _mm256_unpackhi_epi8(l, zero), _mm256_unpacklo_epi8(h, zero), _mm256_unpackhi_epi8(h, zero)};
        for (int k = 0; k < 4; k++) {
            upper[k] = add_products(upper[k], s[k], _mm256_set1_epi32(w[j]));
            lower[k] = add_products(lower[k], s[k], _mm256_set1_epi32(w[j + 1]));
        }
    }
    __m256i l = _mm256_packs_epi32(finish(upper[0], lower[0]), finish(upper[1], lower[1]));
    __m256i h = _mm256_packs_epi32(finish(upper[2], lower[2]), finish(upper[3], lower[3]));
    _mm256_storeu_si256((void *)dst, _mm256_packus_epi16(l, h));
}

/* down makes SIZE rows of n samples. Rows of dst may be written past n up to a multiple of 32. */
static void down(const axis *a, const uint8_t *src, size_t stride, int n, uint8_t *dst, size_t dst_stride) {
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < n; x += 32)
            down_block(src + a->first[y] * stride + x, stride, a->pairs + (size_t)y * a->stride, a->count[y], dst + y * dst_stride + x);
}

typedef struct {
    axis x, y;
    uint8_t *middle;
    size_t have;
} resizer;

/* resize makes the picture in the order of passes of Pillow 13. */
static void resize(resizer *r, const crop *c, const uint8_t *src, size_t stride, uint8_t *dst) {
    set_axis(&r->x, c->width);
    set_axis(&r->y, c->height);
    if (SIZE < c->height && c->height - SIZE > 2 * (c->width - SIZE)) {
        size_t row = (3 * c->width + 63) & ~63;
        grown(&r->middle, &r->have, SIZE * row);
        down(&r->y, src, stride, 3 * c->width, r->middle, row);
        across(&r->x, r->middle, row, SIZE, c->flip, dst);
    } else {
        grown(&r->middle, &r->have, (size_t)c->height * ROW);
        across(&r->x, src, stride, c->height, c->flip, r->middle);
        down(&r->y, r->middle, ROW, ROW, dst, ROW);
    }
}

/* -- decode ------------------------------------------------------------------------------------------------------- */

typedef struct {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    uint8_t *pixels;
    size_t have;
    resizer resizer;
} decoder;

static void fail(j_common_ptr c) {
    c->err->output_message(c);
    longjmp(((decoder *)c->client_data)->failed, 1);
}

static void ignore(j_common_ptr c, int level) {
    (void)c, (void)level;
}

static decoder *new_decoder(void) {
    decoder *d = room(sizeof *d);
    d->jpeg.err = jpeg_std_error(&d->errors);
    d->errors.error_exit = fail;
    d->errors.emit_message = ignore;
    d->jpeg.client_data = d;
    jpeg_create_decompress(&d->jpeg);
    return d;
}

/* narrow has only the columns decoded that a crop needs: with subsampled colour an MCU more on both sides, which the upsampling looks at. It
 * returns the first column that is. */
static JDIMENSION narrow(struct jpeg_decompress_struct *j, const crop *c) {
    int margin = j->max_h_samp_factor > 1 ? 8 * j->max_h_samp_factor : 0;
    int left = c->left - margin, right = c->left + c->width + margin, all = j->output_width;
    JDIMENSION first = left < 0 ? 0 : left, width = (right > all ? all : right) - first;
    if (first > 0 || (int)width < all) jpeg_crop_scanline(j, &first, &width);
    return first;
}

static void read_rows(struct jpeg_decompress_struct *j, uint8_t *to, size_t stride, int rows) {
    JSAMPROW row[16];
    for (int y = 0; y < rows;) {
        int n = rows - y < 16 ? rows - y : 16;
        for (int k = 0; k < n; k++) row[k] = to + (size_t)(y + k) * stride;
        y += jpeg_read_scanlines(j, row, n);
    }
}

/* make makes a picture; 0 if it does not decode. */
static int make(decoder *d, const file *f, const crop *c, uint8_t *dst) {
    struct jpeg_decompress_struct *j = &d->jpeg;
    if (setjmp(d->failed)) {
        jpeg_abort_decompress(j);
        return 0;
    }
    jpeg_mem_src(j, f->bytes, f->length);
    jpeg_read_header(j, TRUE);
    j->out_color_space = JCS_RGB;
    jpeg_start_decompress(j);
    JDIMENSION first = narrow(j, c);
    if (c->top > 0) jpeg_skip_scanlines(j, c->top);
    size_t stride = (3 * (size_t)j->output_width + 63) & ~63;
    /* Not on a multiple of 32 bytes, where the library's colour conversion writes past the caches, from which the resize reads. */
    uint8_t *pixels = grown(&d->pixels, &d->have, stride * c->height + 16) + 16;
    read_rows(j, pixels, stride, c->height);
    jpeg_abort_decompress(j);
    resize(&d->resizer, c, pixels + 3 * (c->left - first), stride, dst);
    return 1;
}

/* -- orders ------------------------------------------------------------------------------------------------------- */

static file read_file(const char *folder, const char *name) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    file out = {0};
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(path);
        exit(1);
    }
    out.length = ftell(f);
    rewind(f);
    out.bytes = room(out.length);
    if (fread(out.bytes, 1, out.length, f) != out.length) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return out;
}

/* read_crops reads all lines of the file of crops, and the files that the first n are about. */
static crop *read_crops(const char *folder, const char *path, int n, file *files, int *lines) {
    FILE *f = fopen(path, "r");
    crop *crops = NULL, c;
    char name[4096];
    for (*lines = 0; f && fscanf(f, "%d %d %d %d %d %4095[^\n]", &c.top, &c.left, &c.height, &c.width, &c.flip, name) == 6; ++*lines) {
        crops = realloc(crops, (*lines + 1) * sizeof *crops);
        crops[*lines] = c;
        if (*lines < n) files[*lines] = read_file(folder, name);
    }
    if (*lines < n || n < 1) {
        fprintf(stderr, "floor: %s: %d crops for %d pictures\n", path, *lines, n);
        exit(1);
    }
    fclose(f);
    return crops;
}

static uint32_t crc32(const uint8_t *p, size_t n) {
    uint32_t crc = ~0u;
    while (n--) {
        crc ^= *p++;
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (0xedb88320 & -(crc & 1));
    }
    return ~crc;
}

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        printf("libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION) "\n");
        return argc != 1;
    }
    int n = atoi(argv[3]), lines, epoch;
    file *files = room(sizeof *files * (n > 0 ? n : 0));
    crop *crops = read_crops(argv[1], argv[2], n, files, &lines);
    uint8_t *batch = room(BATCH * PICTURE);
    decoder *d = new_decoder();
    char word[16], line[64];
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%15s %d", word, &epoch) == 2 && epoch >= 0 && (epoch + 1) * n <= lines) {
        int check = !strcmp(word, "check");
        double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
        for (int i = 0; i < n; i++) {
            uint8_t *dst = batch + i % BATCH * PICTURE;
            if (!make(d, &files[i], &crops[epoch * n + i], dst)) return 1;
            if (check) printf("%s%u", i ? ", " : "{\"crcs\": [", crc32(dst, PICTURE));
        }
        cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, wall = seconds(CLOCK_MONOTONIC) - wall;
        if (check)
            printf("]}\n");
        else
            printf("{\"cpu\": %.6f, \"wall\": %.6f, \"images\": %d}\n", cpu, wall, n);
        fflush(stdout);
    }
    return 0;
}
